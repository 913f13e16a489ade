"""The launch templates, with what they call replaced by programs that say how they were called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts" / "launch"
SAYS = '#!/bin/sh\nprintf "%s" "{name}"; for a in "$@"; do printf "|%s" "$a"; done; echo\n'


def shims(folder: Path, **programs: str) -> dict[str, str]:
    """The environment in which these programs are found first."""
    folder.mkdir(exist_ok=True)
    for name, content in programs.items():
        (folder / name).write_text(content.replace("{name}", name))
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def run(script: str, *arguments: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    shell = "bash" if script.endswith("sbatch") else "sh"
    return subprocess.run(
        [shell, str(SCRIPTS / script), *arguments], env=env, cwd=cwd, capture_output=True, text=True, check=False
    )


def test_on_one_machine_there_is_a_process_per_gpu(tmp_path: Path) -> None:
    env = shims(tmp_path / "bin", squtr=SAYS, **{"nvidia-smi": "#!/bin/sh\necho GPU 0\necho GPU 1\n"})
    done = run(
        "single_node.sh", "data", "run", "a + bm25", "b.yaml", env={**env, "CONFIGS": "zh_* en_clean"}, cwd=tmp_path
    )
    assert done.stdout == (
        "squtr|evaluate|a + bm25|b.yaml|--data|data|--out|run|--configs|zh_*|en_clean|--num-processes|2"
        "|--json-log|run.log.jsonl\n"
    )


def test_a_machine_without_gpus_has_one_process(tmp_path: Path) -> None:
    env = shims(tmp_path / "bin", squtr=SAYS, **{"nvidia-smi": "#!/bin/sh\nexit 9\n"})
    assert "--num-processes|1|" in run("single_node.sh", "data", "run", "a + bm25", env=env, cwd=tmp_path).stdout
    assert (
        "--num-processes|3|"
        in run("single_node.sh", "data", "run", "a + bm25", env={**env, "PROCESSES": "3"}, cwd=tmp_path).stdout
    )


@pytest.mark.skipif(shutil.which("bash") is None, reason="SLURM's templates are for bash")
@pytest.mark.parametrize(("gpus", "kind"), [("4", "--multi_gpu"), ("1", "--quiet")])
def test_on_a_cluster_every_machine_learns_its_place(tmp_path: Path, gpus: str, kind: str) -> None:
    srun = '#!/bin/sh\nshift\nSLURM_NODEID=1 exec "$@"\n'  # without srun's own option, on the second machine
    env = shims(tmp_path / "bin", accelerate=SAYS, srun=srun, scontrol="#!/bin/sh\necho first\necho second\n")
    nodes = "2" if gpus == "4" else "1"
    slurm = {
        "SQUTR_HOME": str(tmp_path),
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_GPUS_ON_NODE": gpus,
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_JOB_ID": "123456",
    }
    done = run("slurm.sbatch", "data", "run", "a + bm25", env={**env, **slurm}, cwd=tmp_path)
    total = int(nodes) * int(gpus)
    assert done.stdout == (
        f"accelerate|launch|{kind}|--num_machines|{nodes}|--num_processes|{total}|--machine_rank|1|--main_process_ip|first"
        "|--main_process_port|23456|--mixed_precision|no|--dynamo_backend|no|-m|squtr.harness|evaluate|a + bm25"
        "|--data|data|--out|run|--json-log|run.log.jsonl\n"
    )


def test_too_few_arguments_are_a_usage_error(tmp_path: Path) -> None:
    done = run("single_node.sh", "data", env=shims(tmp_path / "bin"), cwd=tmp_path)
    assert done.returncode == 2
    assert "usage" in done.stderr
