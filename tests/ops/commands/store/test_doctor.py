"""The doctor finds each thing that is wrong, on a server that is made so, and nothing on a healthy one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.servers.redis_server import RealServer
from tests.support.servers.sentinel import free_port
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import spec
from tests.support.store.sick import IN_A_READING, ON_A_SERVER, worker
from tests.support.wait import wait_until
from toolonce.ops.commands.store.doctor import examine, verdict
from toolonce.ops.exit_codes import ExitCode
from toolonce.ops.health.findings import Finding, Severity
from toolonce.ops.health.health_snapshot import take
from toolonce.store.connections.connection import Connection
from toolonce.store.connections.replication import note_replicas

OPS = Path(__file__).parents[4] / "ops"


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    """A server that these tests may make sick; healed after each."""
    with RealServer() as running:
        yield running


@pytest.fixture
def patient(server: RealServer, namespace: str) -> Iterator[LiveScene]:
    store = LiveStore(server.url, namespace)
    yield LiveScene(store)
    store.close()
    heal(server)


def heal(server: RealServer) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "+@all", "~*", "&*")
        client.execute_command("REPLICAOF", "NO", "ONE")
        wanted = {
            "appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction", "maxmemory": "0",
            "hash-max-listpack-value": "256",
        }  # fmt: skip
        for name, value in wanted.items():
            client.config_set(name, value)
        client.flushall()


def codes(scene: LiveScene) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in examine(take(scene.live.connection))}


def test_a_healthy_installation_has_no_findings_but_notices(
    patient: LiveScene, toolonce: CommandLine, server: RealServer, namespace: str
) -> None:
    patient.publish(spec("pay"))
    worker(patient, "w", grace_s=25)
    patient.succeeded("a")

    said = toolonce("doctor", "--strict", place=["--redis", server.url, "--namespace", namespace])

    assert said.code == 0, said.out
    assert set(codes(patient)) <= {"no_memory_limit"}


@pytest.mark.parametrize("code", ON_A_SERVER)
def test_each_sickness_is_found_on_a_server_that_has_it(patient: LiveScene, code: str) -> None:
    before = codes(patient)

    ON_A_SERVER[code](patient)

    assert code in codes(patient)
    assert code not in before or code in {"no_memory_limit", "no_tools"}


@pytest.mark.parametrize("code", IN_A_READING)
def test_each_sickness_is_found_in_a_reading_that_shows_it(patient: LiveScene, code: str) -> None:
    snapshot = take(patient.live.connection)
    assert code not in {finding.code for finding in examine(snapshot)}

    found = {finding.code for finding in examine(IN_A_READING[code](snapshot))}

    assert code in found


def test_every_finding_that_the_doctor_knows_is_tested_above() -> None:
    text = "".join(path.read_text() for path in (OPS / "health").glob("*findings.py"))
    known = set(re.findall(r'Finding\(\s*"(\w+)"', text))

    assert known == {*ON_A_SERVER, *IN_A_READING}


def test_every_finding_says_why_it_matters_and_what_mends_it(patient: LiveScene) -> None:
    snapshot = take(patient.live.connection)
    for make in IN_A_READING.values():
        for finding in examine(make(snapshot)):
            assert finding.why
            assert finding.mend


@pytest.mark.parametrize(
    ("code", "exit_code"), [("no_fsync", 4), ("unserved_queue", 1), ("unknown", 0), ("no_memory_limit", 0)]
)
def test_the_exit_code_tells_the_worst_severity(
    patient: LiveScene, toolonce: CommandLine, server: RealServer, namespace: str, code: str, exit_code: int
) -> None:
    ON_A_SERVER[code](patient)

    said = toolonce("doctor", "--json", place=["--redis", server.url, "--namespace", namespace])

    assert said.code == exit_code
    assert code in {finding["code"] for finding in said.json["findings"]}


def test_strict_probes_fail_on_warnings_and_others_do_not() -> None:
    warning = Finding("unknown", Severity.WARNING, "what", "why", "mend")

    assert verdict([warning]) is ExitCode.DONE
    assert verdict([warning], strict=True) is ExitCode.ENDED_BADLY
    assert verdict([], strict=True) is ExitCode.DONE


def test_the_worst_finding_is_told_first(patient: LiveScene) -> None:
    ON_A_SERVER["unknown"](patient)
    ON_A_SERVER["no_aof"](patient)

    found = examine(take(patient.live.connection))

    assert [finding.severity for finding in found] == sorted((f.severity for f in found), reverse=True)
    assert found[0].code == "no_aof"


def test_a_workers_need_of_all_replicas_is_no_finding(patient: LiveScene) -> None:
    """Faults 6."""
    patient.live.run(note_replicas(patient.space, 2))
    worker(patient, "w", replicas="all", grace_s=25)

    assert set(codes(patient)) <= {"no_memory_limit"}


def test_the_clocks_of_replicas_and_host_are_compared() -> None:
    """Faults 6."""
    port, other = free_port(), free_port()
    with (
        RealServer(port=str(port), bind="127.0.0.1", repl_diskless_sync_delay="0"),
        RealServer(port=str(other), bind="127.0.0.1") as replica,
    ):
        with replica.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(port))
            wait_until(lambda: client.info("replication")["master_link_status"] == "up")
        connection = Connection(f"redis://127.0.0.1:{port}/0")
        wait_until(lambda: len(take(connection).clocks) == 2, description="the replica is asked")
        clocks = take(connection).clocks
        connection.close()

    assert set(clocks) == {"this host", f"127.0.0.1:{other}"}
