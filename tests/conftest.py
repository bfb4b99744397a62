# First of all imports, as in the entry points: Locust patches ssl, which every HTTP client below imports.
import locust  # noqa: F401
