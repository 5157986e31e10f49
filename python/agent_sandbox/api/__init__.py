"""What a program uses: the Sandbox and its parts."""
