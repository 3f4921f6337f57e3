"""A real SLURM on one host: munged, slurmctld and two slurmd, from Debian's packages, without systemd.

    python tests/slurm/cluster.py start    # needs root; the config goes to /etc/slurm, all else to /run/overread-slurm
    python tests/slurm/cluster.py stop
    python tests/slurm/cluster.py stop-controller, start-controller    # as a crash and a repair do; jobs run on

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
        subprocess.run(["slurmd", "-N", name], check=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        states = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True, check=False).stdout
        if states.split() and set(states.split()) == {"idle"}:
            return
        time.sleep(0.2)
    raise SystemExit(f"the nodes did not come up: {states!r}; see {HOME}/*.log")


def stop() -> None:
    """End the jobs, and the daemons that `start` started. Jobs outlive the daemons otherwise."""
    if (HOME / "munge.pid").exists():
        if not (HOME / "slurmctld.pid").exists():
            with suppress(subprocess.CalledProcessError):
                start_controller()
        cancel_all()
    for file in sorted(HOME.glob("*.pid")) if HOME.exists() else []:
        end(file)
    time.sleep(0.5)
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
    process = Path("/proc") / file.read_text().strip()
    end(file)
    deadline = time.monotonic() + 30
    while process.exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def cancel_all(seconds: float = 20) -> None:
    for partition in ("cpu", "gpu"):
        subprocess.run(["scancel", "--partition", partition], timeout=60, check=False)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = subprocess.run(["squeue", "-h"], capture_output=True, text=True, timeout=60, check=False)
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


COMMANDS = {
    "start": start,
    "stop": stop,
    "start-controller": start_controller,
    "stop-controller": stop_controller,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]]()
