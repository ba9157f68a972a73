"""`rejoin assign`: the tables, the JSON and the errors."""

from __future__ import annotations

import json
import re

import pytest

from rejoin.client.assignors.whatif import WhatIf
from rejoin.client.commands.assign import app
from rejoin.client.commands.assigning import evenness, parse_members, parse_topics, runs

GROUP = ["--topics", "orders:12,clicks:6", "--members", "a,b,c"]


def run(capsys: pytest.CaptureFixture[str], *words: str, width: int = 110) -> str:
    """What the command prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        assert app([*GROUP, *words], result_action="return_value") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return "\n".join(line.rstrip() for line in printed.out.splitlines())


def test_one_assignor_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--assignor", "cooperative-sticky", "--then", "leave:b", "--then", "join:d") == (
        """\
0  start  cooperative-sticky
member   orders        clicks   count
──────────────────────────────────────────────
a        0, 3, 6, 9    0, 3         6   ██████
b        1, 4, 7, 10   1, 4         6   ██████
c        2, 5, 8, 11   2, 5         6   ██████
6 each

1  b leaves
member   orders             clicks   count               gained         lost
────────────────────────────────────────────────────────────────────────────
a        0-1, 3, 6-7, 9     0-1, 3       9   █████████   clicks 1
                                                         orders 1, 7
c        2, 4-5, 8, 10-11   2, 4-5       9   █████████   clicks 4
                                                         orders 4, 10
9 each · 0 moved · 12 stayed · 6 taken over from b

2  d joins
member   orders   clicks   count            gained        lost
─────────────────────────────────────────────────────────────────────────
a        0-1, 3   0-1, 3       6   ██████                 orders 6-7, 9
c        2, 4-5   2, 4-5       6   ██████                 orders 8, 10-11
d        6-11                  6   ██████   orders 6-11
6 each · 6 moved · 12 stayed
generation 3 held back orders 6-11 until the old owner had revoked it"""
    )


def test_all_four_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    printed = run(capsys, "--compare", "--then", "leave:b", "--then", "join:d", width=120)
    assert printed.endswith(
        """\
In all
assignor             moved   rebalances   largest gap
─────────────────────────────────────────────────────
range                    9            3             0
roundrobin              18            3             0
sticky                   6            3             0
cooperative-sticky       6            4             0"""
    )
    assert "             range         roundrobin           sticky               cooperative-sticky" in printed
    assert "+6 -3" in printed


def test_where_columns_do_not_fit_there_are_rows(capsys: pytest.CaptureFixture[str]) -> None:
    printed = run(capsys, "--compare", "--then", "leave:b", width=80)
    assert max(map(len, printed.splitlines())) <= 80
    assert "b        range                clicks 2-3; orders 4-7" in printed
    assert "roundrobin           clicks 0, 2, 4; orders 0, 2, 4, 6, 8, 10   +6 -3" in printed
    assert re.search(r"roundrobin +9 each +6 +1", printed)


def test_every_line_of_a_comparison_is_a_row_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "--compare", "--then", "leave:b", width=120).splitlines()
    start = lines.index(next(line for line in lines if line.startswith("balance")))
    assert [line.split()[0] for line in lines[start : start + 3]] == ["balance", "moved", "rebalances"]
    assert lines[start + 1].split() == ["moved", "0", "0", "0", "0"]


def test_spaces_around_names_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_members("a, b : x + y") == {"a": None, "b": ["x", "y"]}
    assert parse_topics("orders: 12, clicks:6") == {"orders": 12, "clicks": 6}
    with pytest.raises(ValueError, match="a member has no name"):
        parse_members("a,,b")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    printed = json.loads(run(capsys, "--assignor", "sticky", "--then", "leave:b", "--then", "grow:clicks:8", "--json"))
    assert printed["assignor"] == "sticky"
    start, leave, grow = printed["steps"]
    assert start["rounds"] == [
        {
            "generation": 1,
            "assignment": {
                "a": {"clicks": [0, 3], "orders": [0, 3, 6, 9]},
                "b": {"clicks": [1, 4], "orders": [1, 4, 7, 10]},
                "c": {"clicks": [2, 5], "orders": [2, 5, 8, 11]},
            },
            "withheld": {},
        }
    ]
    assert start["new"] == 18
    assert (leave["step"], leave["stayed"], leave["moved"]) == ("leave:b", 12, [])
    assert {"topic": "orders", "partition": 1, "from": "b", "to": "a"} in leave["takenOver"]
    assert grow["new"] == 2
    assert grow["balance"] == {"fewest": 10, "most": 10}


def test_json_of_a_comparison_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    printed = json.loads(run(capsys, "--compare", "--then", "join:d", "--json"))
    assert [run["assignor"] for run in printed] == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert [len(run["steps"][1]["rounds"]) for run in printed] == [1, 1, 1, 2]
    held_back = printed[3]["steps"][1]["rounds"][0]["withheld"]
    assert sum(map(len, held_back.values())) == len(printed[3]["steps"][1]["moved"]) == 4


def test_ones_own_assignor_joins_the_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    own = "examples.custom_assignor:WeightedAssignor"
    printed = json.loads(run(capsys, "--compare", "--assignor", own, "--json"))
    assert printed[-1]["assignor"] == own
    assert printed[-1]["steps"][0]["balance"] == {"fewest": 6, "most": 6}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--assignor", "nope"], "unknown assignor 'nope'"),
        (["--assignor", "coop"], "unknown assignor 'coop'; is it cooperative-sticky?"),
        (["--then", "leave:z"], "z is not a member; members are a, b, c"),
        (["--then", "join:a"], "a is already a member"),
        (["--then", "join:"], "a member needs a name"),
        (["--then", "join:d:nope"], "'nope' is no topic here; topics are orders, clicks"),
        (["--then", "grow:orders:12"], "orders has 12 partitions and can only grow, not to '12'"),
        (["--then", "grow:orders:99999999999"], "not to '99999999999'; expected at most 100000"),
        (["--then", "grow:nope:3"], "'nope' is no topic here; topics are orders, clicks"),
        (["--then", "explode"], "unknown step 'explode'; a step is leave:MEMBER"),
        (["--topics", "orders"], "'orders' is not TOPIC:PARTITIONS"),
        (["--topics", "orders:99999999999"], "'orders:99999999999' is not TOPIC:PARTITIONS with 0 to 100000"),
        (["--topics", "orders:100001"], "is not TOPIC:PARTITIONS with 0 to 100000 partitions, as orders:12"),
        (["--topics", "a:1,a:2"], "a is given twice"),
        (["--members", "a,a"], "a is given twice"),
    ],
)
def test_complaints(capsys: pytest.CaptureFixture[str], words: list[str], complaint: str) -> None:
    options = dict(zip(GROUP[::2], GROUP[1::2], strict=True)) | dict(zip(words[::2], words[1::2], strict=True))
    assert app([word for pair in options.items() for word in pair], result_action="return_value") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert complaint in printed.err


def test_parsing() -> None:
    assert parse_topics("orders:12,a:b:3") == {"orders": 12, "a:b": 3}
    assert parse_members("a,b:orders+clicks") == {"a": None, "b": ["orders", "clicks"]}


def test_runs_of_numbers() -> None:
    assert runs([("t", 7), ("t", 1), ("t", 0), ("t", 2), ("s", 3)]) == "s 3\nt 0-2, 7"
    assert runs([]) == ""


class TestWhatIf:
    """The group on paper."""

    def test_the_last_to_leave_leaves_an_empty_group(self) -> None:
        group = WhatIf("sticky", {"t": 2})
        group.start({"a": None})
        outcome = group.run("leave:a")
        assert (outcome.owned, outcome.sizes, outcome.after) == ({}, (0, 0), {})
        assert evenness(outcome) == "no members"

    def test_sticky_remembers_through_the_user_data(self) -> None:
        group = WhatIf("sticky", {"t": 4})
        group.start({"a": None, "b": None})
        assert group.run("join:c").stayed == 3

    def test_changing_ones_topics(self) -> None:
        group = WhatIf("range", {"t": 2, "u": 2})
        group.start({"a": None, "b": ["t"]})
        assert group.run("subscribe:b:u").owned == {"a": (("t", 0), ("t", 1), ("u", 0)), "b": (("u", 1),)}

    def test_a_topic_without_subscribers_is_not_assigned(self) -> None:
        outcome = WhatIf("range", {"t": 1, "u": 1}).start({"a": ["t"]})
        assert outcome.rounds[-1].withheld == ()

    def test_a_new_topic_may_appear_by_growing_from_nothing(self) -> None:
        group = WhatIf("roundrobin", {"t": 1, "u": 0})
        group.start({"a": None})
        assert group.run("grow:u:2").new == 2


@pytest.mark.parametrize("more", [[], ["--compare"]])
@pytest.mark.parametrize("width", ["40", "200"])
def test_names_are_shown_and_never_obeyed(
    more: list[str], width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    words = ["--topics", "or\x1b[31mders:4", "--members", "a\x1b[2J,[red]b", "--then", "join:c\x07", *more]
    assert app(words, result_action="return_value") == 0
    out = "".join(capsys.readouterr().out.split("\n"))
    assert out.isprintable()
    assert "[red]b" in out
    assert "c\\x07 joins" in out


def test_a_mistake_is_shown_and_never_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["--topics", "orders:4", "--members", "\x07,\x07"], result_action="return_value") == 2
    assert capsys.readouterr().err == "rejoin: --members: \\x07 is given twice\n"
