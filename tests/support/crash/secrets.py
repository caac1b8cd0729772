"""Tools that are given a secret and do what careless tools do with one; a test then looks for it everywhere."""

from __future__ import annotations

from toolonce.worker import Call, DidNotHappen, Registry, ToolError

MARKER = "sk-marker-7f3a9c51"
tools = Registry()


@tools.tool(effect="mutating", secret="api_key", secret_result="token")
def sign_in(api_key: str, note: str) -> dict[str, str]:
    """Return a secret of its own, and the one it was given in a place that is not declared."""
    return {"token": f"Bearer {MARKER}-{note}", "note": note, "echo": f"signed in with {api_key}"}


@tools.tool(effect="mutating", secret="api_key")
def refuse(api_key: str) -> None:
    """Say the secret in the words for the model."""
    raise ToolError(f"the key {api_key} is not known", details={"tried": api_key})


@tools.tool(effect="mutating", secret="api_key")
def break_down(api_key: str, *, call: Call) -> None:
    """Say it in progress, in a log and in an exception."""
    call.progress(0.5, f"trying {api_key}")
    call.logger.warning("the key %s does not work", api_key)
    raise RuntimeError(f"cannot use {api_key}")


@tools.tool(effect="mutating", secret="api_key", isolation="process")
def break_down_apart(api_key: str) -> None:
    """Say it in an exception of another process."""
    raise ValueError(f"cannot use {api_key}")


@tools.tool(effect="mutating", secret="auth.password", schema={
    "type": "object",
    "properties": {"auth": {"type": "object", "properties": {"password": {"type": "string", "maxLength": 30}}}},
})  # fmt: skip
def deep(auth: dict[str, str]) -> str:
    """Hold it deeper in the arguments."""
    return f"as {auth['password']}"


@tools.tool(effect="mutating", secret="api_key", rerun_absent=False)
def unclear(api_key: str) -> None:
    """Leave its call unknown, to be reconciled."""
    raise RuntimeError(f"no answer for {api_key}")


@unclear.reconcile
def was_it(api_key: str) -> None:
    """Say it where the reconcile finds that it did not happen."""
    raise DidNotHappen(f"nothing was booked with {api_key}")
