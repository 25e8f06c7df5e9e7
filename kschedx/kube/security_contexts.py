"""The fields of security contexts that decide on which nodes a pod can start."""

# Annotations are evaluated, as in `kube/types.py`.

from msgspec import Struct


class _WindowsOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    host_process: bool | None = None


class SecurityContext(Struct, frozen=True, kw_only=True, rename="camel"):
    windows_options: _WindowsOptions | None = None

    @property
    def is_host_process(self) -> bool:
        return self.windows_options is not None and bool(self.windows_options.host_process)
