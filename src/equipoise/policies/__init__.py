"""Policies: limits and policy files; read, check, explain, propose a first one."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.policies.json_schema import schema_text

__all__ = ["schema_text"]

export_lazily(__name__, schema_text="json_schema")
