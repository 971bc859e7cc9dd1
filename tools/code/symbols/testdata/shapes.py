"""Shapes.

class NotThis:
    pass
"""
from __future__ import annotations
import os

MAX_SIDES = 12
origin: tuple[float, float] = (0, 0)
logger = get("x")
_private = {
    "def": 1,
    "class Hidden": 2,
}


class Shape(Base, metaclass=Meta):
    """A shape.

    def not_a_method(self): ...
    """

    sides: int = 0

    def __init__(self, name: str,
                 scale=1.0):
        self.name = name

    @property
    def area(self) -> float:
        def inner(x):
            return x
        return inner(1)

    async def load(self): return await self._load()

    @staticmethod
    def make(
        kind,
    ):
        # def commented(self):
        return Shape(kind)

    class Meta:
        ordering = 1

        def deep(self):
            pass


class Empty: pass


def main(argv=None):
    text = 'def quoted(): pass'
    raw = r"\""
    while True:
        pass


async def fetch(url, *, timeout=30):
    return f"{url!r} class X:"


if __name__ == "__main__":
    def late():
        pass

    main()


@decorated(
    "def x(): pass"
)
def decorated_function(): ...


lambda_value = lambda x: x
