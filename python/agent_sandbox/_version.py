"""The version, the same as the project's in meson.build."""

__version__ = "0.1.0"
