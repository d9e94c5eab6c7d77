"""The examples for frameworks, with models that are scripted."""

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

WARMER = (
    "export default function agent() { const cities = ['Oslo', 'Rome']\n"
    " return cities.filter((city) => temperature({ city }) > 10) }"
)
TYPO = "export default function agent() { const anwser = 1\n return { answer } }"


def test_pydantic_ai():
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai_tool import agent

    seen = []

    def model(messages, info):
        told = [str(part.content) for part in messages[-1].parts]
        seen.extend(told)
        if "Rome" in told[0]:
            return ModelResponse(parts=[TextPart(f"Warm: {told[0]}")])
        source = WARMER if "did you mean" in told[0] else TYPO
        return ModelResponse(parts=[ToolCallPart("run_program", {"source": source})])

    assert agent(FunctionModel(model)).run_sync("Where is it warm?").output == "Warm: ['Rome']"
    assert "did you mean `anwser`" in seen[1]


def test_smolagents():
    pytest.importorskip("smolagents")
    from smolagents_tool import RunProgram

    assert RunProgram()(source=WARMER) == ["Rome"]


def test_langchain():
    pytest.importorskip("langchain_core")
    from langchain_tool import run_program

    assert asyncio.run(run_program.ainvoke({"source": WARMER})) == '["Rome"]'
    assert "did you mean `anwser`" in asyncio.run(run_program.ainvoke({"source": TYPO}))
