# Its own `__init__` imports some four hundred models, which takes a checker of types a fifth of its time; we use a few.
from typing import Any

def __getattr__(name: str) -> Any: ...
