"""agent=terminal in real containers: what it can do, every limit, every failure."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from opro.agents import image
from opro.agents.box import OutOfMemory
from opro.agents.container import Container
from opro.agents.docker_engine import PROJECT, Engine
from opro.agents.terminal import TerminalAgent
from opro.errors import ConfigError, Interrupted, ScoreError
from opro.types import Kind, Task
from tests.agents.conftest import Runner


def test_files_turns_and_the_check(runner: Runner) -> None:
    files = {"in/a b.txt": "süß\n", "empty": "", "big": "x" * 300_000 + "\n"}
    check = '[ "$(cat "in/a b.txt")" = "süß" ] && [ -f empty ] && [ "$(wc -c < big)" = 300001 ]'
    check += ' && [ "$(cat made)" = "süß" ] && [ "$(cat set)" = up ]'
    run = runner.run(
        'cat "in/a b.txt" > made; cd in; x=1', 'pwd; echo "x is $x"; exit 3', files=files,
        setup="echo up > set", check=check,
    )  # fmt: skip
    assert (run.score, run.kind, run.reason, run.output) == (1.0, None, "", "DONE")
    assert runner.told() == "exit code: 3\noutput:\n/work\nx is"
    first = runner.requests[0].messages
    assert [message.role for message in first] == ["system", "user"]
    assert first[0].content.startswith("Be brief.\n\n") and "10 replies" in first[0].content
    assert first[1].content == "Do it."
    assert [step.get("command") for step in run.trajectory][1] == ('pwd; echo "x is $x"; exit 3\n')
    assert run.trajectory[-1]["check"] == "exited with 0"


@pytest.mark.parametrize(
    ("check", "score", "reason"),
    [
        ("echo almost; exit 4", 0.0, "the check exited with 4: almost"),
        ("echo two of four; echo SCORE: 0.5; exit 1", 0.5, "the check gave 0.5: two of four"),
        ("echo SCORE: 1", 1.0, ""),
        ("echo SCORE: x; exit 1", 0.0, "the check exited with 1: SCORE: x"),
        ("echo SCORE: 1; kill -9 $$", 1.0, ""),
    ],
)
def test_the_checks_verdict(runner: Runner, check: str, score: float, reason: str) -> None:
    run = runner.run(check=check)
    assert (run.score, run.reason, run.kind) == (score, reason, None)


def test_a_score_out_of_range_stops_the_search(runner: Runner) -> None:
    with pytest.raises(ScoreError, match=r"the check of task 't' printed 'SCORE: 30'"):
        runner.run(check="echo SCORE: 30")


def test_what_the_model_is_told_without_a_whole_block(runner: Runner) -> None:
    replies = ["Let me think.", "```bash\necho half", "```sh\necho 1\n```\n```sh\necho 2\n```"]
    run = runner.run(replies=[*replies, "```bash\nprintf '\\377\\0ok'\n```\n**DONE**"])
    told = [message.content for message in runner.requests[-1].messages[3::2]]
    assert told[0].startswith("Nothing was run") and "DONE" in told[0]
    assert "cut off" in told[1]
    assert told[2] == "exit code: 0\noutput:\n1\n\nOnly the first block of the reply was run."
    assert run.trajectory[3]["told"] == "exit code: 0\noutput:\n\ufffd\0ok"
    assert run.kind is None


def test_the_isolation(runner: Runner) -> None:
    script = """
        id -u; id -g; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status
        touch /bin/x /etc/x /x 2>&1 | wc -l; touch /work/x /tmp/x; mkdir /sys/fs/cgroup/x 2>&1
        ip -o link | cut -d: -f2; nc -w 2 172.17.0.1 80 2>&1; cat /proc/1/environ"""
    run = runner.run(script)
    told = run.trajectory[0]["told"]
    user = str(os.getuid() or 65534)
    lines = told.splitlines()[2:]
    assert lines[:2] == [user, str(os.getgid() or 65534)]
    assert [line.split()[1] for line in lines[2:5]] == ["0000000000000000", "1", "2"]
    assert lines[5] == "3"  # the root file system can't be written
    assert " lo" in lines and not any("eth" in line for line in lines)
    assert "(172.17.0.1): Network is unreachable" in told
    assert str(os.environ["HOME"]) + "/" not in told


def test_a_network_only_where_the_task_asks(runner: Runner) -> None:
    assert " eth0" in runner.run("ip -o link | cut -d: -f2", network=True).trajectory[0]["told"]


SMALL = {"memory_mb": 32, "workdir_mb": 4}


def test_the_memory_limit(runner: Runner) -> None:
    hungry = "x=aaaaaaaa; while :; do x=$x$x; done"
    run = runner.run(
        hungry, "echo alive", limits={"memory_mb": 32, "workdir_mb": 4}, check="exit 1"
    )
    assert "(a command was killed at the memory limit of 32 MB)" in run.trajectory[0]["told"]
    assert "alive" in run.trajectory[1]["told"]  # the agent goes on
    assert (
        run.reason == "a command was killed at the memory limit of 32 MB; the check exited with 1"
    )
    assert run.kind is None


def test_a_container_that_its_memory_ended(daemon: Engine, nothing_left: None) -> None:
    hungry = ["/bin/sh", "-c", "sleep 1; x=aaaaaaaa; while :; do x=$x$x; done"]
    size = daemon.api.create_host_config(mem_limit=32 << 20, memswap_limit=32 << 20)
    made = daemon.api.create_container(image.IMAGE, hungry, host_config=size, labels=PROJECT)
    daemon.api.start(made["Id"])
    with pytest.raises(OutOfMemory):
        Container(daemon, made["Id"]).shell("sleep 20", 20, 1000)
    daemon.remove(made["Id"])


def test_full_folders_leave_room_for_the_check(runner: Runner) -> None:
    fill = "for d in /work /tmp /dev/shm; do dd if=/dev/zero of=$d/x bs=1M; done; ls -l /work"
    run = runner.run(fill, limits={"memory_mb": 32, "workdir_mb": 12}, check="ls | grep x")
    assert run.trajectory[0]["told"].count("No space left on device") == 3
    assert run.score == 1.0


def test_the_limit_of_processes(runner: Runner) -> None:
    bomb = "f() { f | f & }; f; sleep 1; echo never mind"
    run = runner.run(bomb, "echo alive", limits={"pids": 16}, check="exit 1")
    assert "can't fork" in run.trajectory[0]["told"]
    assert run.reason.startswith("processes: more than the 16 allowed; the check exited with 1")
    assert runner.run(bomb, limits={"pids": 16}, check="echo | cat").score == 1.0


def test_the_time_of_one_command(runner: Runner) -> None:
    limits = {"command_seconds": 1.5}
    began = time.monotonic()
    run = runner.run("echo begun; (sleep 60 &) ; sleep 60", "ps", limits=limits, check="exit 1")
    assert time.monotonic() - began < 30
    told = run.trajectory[0]["told"]
    assert told == "exit code: none (a command was killed after 1.5 s)\noutput:\nbegun\n"
    assert "sleep" not in run.trajectory[1]["told"]  # what it left behind was killed, too
    assert run.reason == "a command was killed after 1.5 s; the check exited with 1"


def test_the_time_of_all_commands(runner: Runner) -> None:
    limits = {"seconds": 2.0, "command_seconds": 1.2}
    blocks = ["sleep 9", "sleep 9", "echo never", "echo never"]
    run = runner.run(*blocks, limits=limits, check="echo SCORE: 0.5")
    assert (run.kind, run.score) == (Kind.LIMIT, 0.5)
    assert run.reason.startswith("seconds: the commands took 2 s in all; ")
    assert len(run.trajectory) <= 3


def test_the_limit_of_turns_and_a_check_that_says_it_is_done_all_the_same(runner: Runner) -> None:
    run = runner.run("touch a", "touch b", limits={"turns": 2}, check="[ -f a ] && [ -f b ]")
    assert (run.kind, run.score, run.reason) == (Kind.LIMIT, 1.0, "turns: 2 replies without DONE")
    assert runner.agent.max_calls == 2


def test_the_limit_of_output(runner: Runner) -> None:
    run = runner.run("yes", limits={"output_bytes": 50_000}, check="exit 1")
    assert run.kind is Kind.LIMIT and run.score == 0.0
    assert run.reason.startswith("output: more than 50000 bytes in all; ")
    assert len(str(run.trajectory)) < 10_000


def test_a_long_output_is_clipped_in_the_middle(runner: Runner) -> None:
    run = runner.run("seq 1 5000", check="exit 0")
    told = run.trajectory[0]["told"]
    assert runner.told().startswith("exit code: 0\noutput:\n1\n2\n3\n")
    assert runner.told().endswith("\n4999\n5000") and len(runner.told()) < 4100
    assert "characters left out" in told


def test_a_hanging_check_is_a_zero(runner: Runner) -> None:
    run = runner.run(check="sleep 60", limits={"check_seconds": 0.3})
    assert (run.score, run.kind, run.reason) == (0.0, None, "the check took too long")


def test_what_the_agent_left_running_cannot_meddle_with_the_check(runner: Runner) -> None:
    meddle = "(trap '' TERM; while :; do echo 1 > answer; done) > /dev/null 2>&1 &"
    assert runner.run(meddle, check="rm -f answer; sleep 0.3; [ ! -e answer ]").score == 1.0


def test_a_failing_set_up_is_not_the_agents_fault(runner: Runner) -> None:
    run = runner.run(setup="echo no luck; exit 5")
    assert (run.kind, run.score) == (Kind.ERROR, None)
    assert run.reason == "the task's set-up exited with 5: no luck"


@pytest.mark.parametrize("command", ["sleep 20", "exec 1>&- 2>&-; sleep 20"])
def test_a_container_ended_from_outside(runner: Runner, daemon: Engine, command: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(runner.run, command, name="victim")
        daemon.api.kill(_container(daemon, "victim"))
        run = found.result(timeout=30)
    assert (run.kind, run.score) == (Kind.ERROR, None)
    assert run.reason == "the container was ended from outside (exit code 137)"
    assert len(run.trajectory) == 1


def test_close_ends_what_runs(daemon: Engine, nothing_left: None) -> None:
    runner = Runner()
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(runner.run, "sleep 30", name=f"c{k}") for k in range(3)]
        for k in range(3):
            _container(daemon, f"c{k}")
        began = time.monotonic()
        runner.agent.close()
        for one in found:
            with pytest.raises(Interrupted):
                one.result(timeout=30)
        assert time.monotonic() - began < 15
    with pytest.raises(Interrupted):
        runner.run("true")


def test_twenty_containers_at_once(runner: Runner, daemon: Engine) -> None:
    gate = threading.Barrier(20)
    most = [len(daemon.ours())]

    def one(number: int) -> float | None:
        gate.wait()
        script = f"echo {number} > mine; sleep 2"
        return runner.run(script, name="twenty", check=f'[ "$(cat mine)" = {number} ]').score

    with ThreadPoolExecutor(21) as pool:
        found = [pool.submit(one, number) for number in range(20)]
        while not all(future.done() for future in found):
            most.append(len(daemon.ours()))
            time.sleep(0.2)
    assert [future.result() for future in found] == [1.0] * 20
    assert max(most) - most[0] == 20


def _container(daemon: Engine, run: str) -> str:
    """Return the id of a run's container once a command runs in it."""
    for _ in range(200):
        for found in daemon.ours():
            if found.labels["opro.run"] == run:
                top = daemon.api.top(found.id)["Processes"] if _alive(daemon, found.id) else []
                if any("sleep" in " ".join(row) for row in top):
                    return found.id
        time.sleep(0.05)
    raise AssertionError("no container came up")


def _alive(daemon: Engine, name: str) -> bool:
    return bool(daemon.state(name)["Running"])


TASK = Task(id="t", fields={"task": "Do it."}, extra={"check": "true"})


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({}, "task 't' has no column 'check'"),
        ({"check": 1}, "task 't': check: input should be a valid string"),
        ({"check": "true", "netwrk": True}, "column 'netwrk': did you mean 'network'?"),
        ({"check": "true", "network": "yes"}, "task 't': network: input should be a valid boolean"),
        ({"check": "true", "limits": {"turn": 1}}, "task 't': limits.turn: "),
        ({"check": "true", "limits": {"pids": 0}}, "task 't': limits.pids: input should be"),
        ({"check": "true", "files": {"../x": ""}}, "files: '../x' is no path of a file under"),
        ({"check": "true", "files": {"/etc/x": ""}}, "files: '/etc/x' is no path"),
        ({"check": "true", "setup": "x" * 200_000}, "setup: at most 100000 bytes"),
        ({"check": "true", "image": "no-such:1"}, "Docker has no such image; get it with docker"),
    ],
)
def test_a_task_that_cannot_work_is_refused(daemon: Engine, extra: dict, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TerminalAgent().check((Task(id="t", fields={"task": "x"}, extra=extra),))
    assert message in str(caught.value) and "\n" not in str(caught.value)
