"""A real SLURM on one host: munged, slurmctld and two slurmd, from Debian's packages, without systemd.

    python tests/slurm/cluster.py start    # needs root; the config goes to /etc/slurm, all else to /run/overread-slurm
    python tests/slurm/cluster.py stop
    python tests/slurm/cluster.py stop-controller, start-controller    # as a crash and a repair do; jobs run on
    python tests/slurm/cluster.py crash-node n2, start-node n2         # all that runs there is gone at once
    python tests/slurm/cluster.py spoil-launch n2 7, mend-launch n2 7  # job 7 can't be launched there
    python tests/slurm/cluster.py repair                               # up and empty again, whatever was done

Two virtual nodes, each with three CPUs and two GPUs that are stand-in device files; a partition `cpu` and one `gpu`.
Nothing is kept in an accounting database: states are asked of squeue and scontrol.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HOME = Path("/run/overread-slurm")
CONFIG = Path("/etc/slurm")  # the jobstep plugin strips SLURM_CONF, so the config must lie where SLURM looks by itself
NODES = ("n1", "n2")
PARTITIONS = ("cpu", "gpu")
PATIENCE = 300.0
"""Seconds for what takes less than thirty on two busy cores."""
MARK = "# made by overread's tests"


def slurm_conf() -> str:
    host = socket.gethostname().split(".")[0]
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={17010 + number} "
        "CPUs=3 RealMemory=32000 Gres=gpu:2"
        for number, name in enumerate(NODES)
    )
    return f"""{MARK}
ClusterName=overread
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=17000
AuthType=auth/munge
AuthInfo=socket={HOME}/munge.socket,cred_expire=20
SlurmUser=root
SlurmdUser=root
StateSaveLocation={HOME}/state
SlurmdSpoolDir={HOME}/spool-%n
SlurmctldPidFile={HOME}/slurmctld.pid
SlurmdPidFile={HOME}/slurmd-%n.pid
SlurmctldLogFile={HOME}/slurmctld.log
SlurmdLogFile={HOME}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={HOME}/completed.txt
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
MinJobAge=3600
KillWait=2
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2
{nodes}
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=ALL MaxTime=INFINITE State=UP
"""


def start() -> None:
    """Start the daemons afresh and wait until both nodes are idle. SystemExit if another cluster's config is there."""
    conf = CONFIG / "slurm.conf"
    if conf.exists() and MARK not in conf.read_text():
        raise SystemExit(f"{conf} belongs to another cluster: the tests will not touch it")
    stop()
    shutil.rmtree(HOME, ignore_errors=True)
    for folder in (HOME, HOME / "state", *(HOME / f"spool-{name}" for name in NODES)):
        folder.mkdir(parents=True)
    HOME.chmod(0o755)
    CONFIG.mkdir(exist_ok=True)
    conf.write_text(slurm_conf())
    for number in range(2 * len(NODES)):
        subprocess.run(["mknod", str(HOME / f"gpu{number}"), "c", "1", "3"], check=True)
    (CONFIG / "gres.conf").write_text(
        MARK
        + "\n"
        + "\n".join(
            f"NodeName={name} Name=gpu File={HOME}/gpu[{2 * number}-{2 * number + 1}]"
            for number, name in enumerate(NODES)
        )
        + "\n"
    )
    key = HOME / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log"}
    options = [f"--{name}={HOME / file}" for name, file in (files | {"seed-file": "munge.seed"}).items()]
    subprocess.run(["munged", "--force", *options], check=True)
    start_controller("-i")
    for name in NODES:
        start_node(name)
    wait_until_idle()


def wait_until_idle(seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        states = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True, check=False).stdout
        if states.split() and set(states.split()) == {"idle"}:
            return
        time.sleep(0.2)
    raise SystemExit(f"the nodes did not come up: {states!r}; see {HOME}/*.log")


def repair() -> None:
    """End all jobs and bring up whatever is down: the next scenario finds the cluster as it was started."""
    if not running(HOME / "slurmctld.pid"):
        start_controller()
    for name in NODES:
        if not running(HOME / f"slurmd-{name}.pid"):
            start_node(name)
    cancel_all()
    for partition in PARTITIONS:
        # Only if need be: after it the nodes look busy for a minute with a job that has just ended.
        command = ["scontrol", "show", "partition", partition]
        if "State=UP" not in subprocess.run(command, capture_output=True, text=True, check=True).stdout:
            scontrol("update", f"partitionname={partition}", "state=up")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for name in NODES:
            if set(node_states(name)) & {"down", "down*", "drained", "draining", "drained*", "draining*"}:
                scontrol("update", f"nodename={name}", "state=resume")
        if all(set(node_states(name)) == {"idle"} for name in NODES):
            return
        time.sleep(0.5)
    raise SystemExit(f"the cluster could not be repaired; see {HOME}/*.log")


def scontrol(*arguments: str) -> None:
    """Without a check: what is to be changed may have changed by itself."""
    subprocess.run(["scontrol", *arguments], capture_output=True, timeout=PATIENCE, check=False)


def node_states(name: str) -> list[str]:
    command = ["sinfo", "-h", "-N", "-n", name, "-o", "%T"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout.split()


def start_node(name: str) -> None:
    subprocess.run(["slurmd", "-N", name], check=True)


def crash_node(name: str) -> None:
    """SIGKILL to the node's daemon, and to its jobs with all that they have started: nothing of them goes on.

    All is stopped before anything is killed. A step daemon that outlives its job by a moment would tell the controller
    that the job has failed, and SLURM would not start it again.
    """
    daemon, stopped = daemon_of(name), set[int]()
    while more := {daemon, *processes_of(name)} - stopped:  # what was started in between is found in the next round
        for process in more:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        stopped |= more
        while any(state_of(str(process)) not in ("T", *GONE) for process in more):
            time.sleep(0.05)
    for process in stopped:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    while processes_of(name):
        time.sleep(0.1)
    (HOME / f"slurmd-{name}.pid").unlink()


def daemon_of(name: str) -> int:
    return int((HOME / f"slurmd-{name}.pid").read_text())


def processes_of(name: str) -> set[int]:
    """A node's step daemons, which write to its log, and what descends from them or has its name in the environment."""
    log, found, parents = str(HOME / f"slurmd-{name}.log"), set(), {}
    itself = daemon_of(name) if (HOME / f"slurmd-{name}.pid").exists() else 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):  # it has ended since
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z":
                continue
            parents[int(folder.name)] = int(parent)
            environment = (folder / "environ").read_bytes().split(b"\0")
            if f"SLURMD_NODENAME={name}".encode() in environment or any(
                os.readlink(one) == log for one in (folder / "fd").iterdir()
            ):
                found.add(int(folder.name))
    found.discard(itself)
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def stop() -> None:
    """End the jobs, and the daemons that `start` started. Jobs outlive the daemons otherwise."""
    if (HOME / "munge.pid").exists():
        if not (HOME / "slurmctld.pid").exists():
            with suppress(subprocess.CalledProcessError):
                start_controller()
        cancel_all()
    files = sorted(HOME.glob("*.pid")) if HOME.exists() else []
    processes = [file.read_text().strip() for file in files]
    for file in files:
        end(file)
    deadline = time.monotonic() + PATIENCE
    while any(alive(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    end_left_over()
    # With a config and no controller, every start of Snakemake would wait for one: the plugin asks it at import.
    for file in (CONFIG / "slurm.conf", CONFIG / "gres.conf"):
        if file.exists() and MARK in file.read_text():
            file.unlink()


def start_controller(*options: str) -> None:
    """Start slurmctld, with the state that the last one saved."""
    subprocess.run(["slurmctld", *options], check=True)


def stop_controller() -> None:
    """End slurmctld, and wait until it has gone; slurmd and what it runs go on."""
    file = HOME / "slurmctld.pid"
    process = file.read_text().strip()
    end(file)
    deadline = time.monotonic() + PATIENCE
    while alive(process):
        if time.monotonic() > deadline:
            raise SystemExit("slurmctld does not end")
        time.sleep(0.1)


def running(file: Path) -> bool:
    """Whether the process of a pid file is there."""
    return file.exists() and alive(file.read_text().strip())


def alive(process: str) -> bool:
    """Whether a process goes on."""
    return state_of(process) not in GONE


GONE = ("Z", "")
"""States of a process that has ended. In a container nobody may collect it, and its number stays."""


def state_of(process: str) -> str:
    """As /proc writes it; nothing if there is no such process."""
    try:
        return Path("/proc", process or "none", "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def cancel_all(seconds: float = PATIENCE) -> None:
    for partition in PARTITIONS:
        subprocess.run(["scancel", "--partition", partition], timeout=PATIENCE, check=False)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = subprocess.run(["squeue", "-h"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        if left.returncode or not left.stdout.strip():
            return
        time.sleep(0.2)


def end_left_over() -> None:
    """End what jobs have left: without cgroups SLURM loses a process whose parent has ended."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended since, or is not ours to look at
            if b"SLURM_CLUSTER_NAME=overread" in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


def end(file: Path) -> None:
    """Ask the process of a pid file to end."""
    with suppress(ProcessLookupError, ValueError):
        os.kill(int(file.read_text()), signal.SIGTERM)
    file.unlink(missing_ok=True)


def launch_folder(name: str, job: str) -> Path:
    """Where a node's daemon would make the folder of a job's script."""
    return HOME / f"spool-{name}" / f"job{int(job):05d}"


def spoil_launch(name: str, job: str) -> None:
    """Let a job's launch on a node fail, each time that it is tried."""
    launch_folder(name, job).write_text("in the way")


def mend_launch(name: str, job: str) -> None:
    launch_folder(name, job).unlink()
    scontrol("update", f"nodename={name}", "state=resume")


COMMANDS = {
    "start": start,
    "stop": stop,
    "start-controller": start_controller,
    "stop-controller": stop_controller,
    "crash-node": crash_node,
    "start-node": start_node,
    "repair": repair,
    "spoil-launch": spoil_launch,
    "mend-launch": mend_launch,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
