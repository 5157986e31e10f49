"""The errors under the name people look for first; they live in `agent_sandbox.models.errors`."""

from agent_sandbox.models.errors import *  # noqa: F403
from agent_sandbox.models.errors import __all__ as __all__
