"""Commands over the workers of a dask cluster: part files in, part files or a model out.

Every part is read, answered and written by the worker it falls to, so files must lie where all
workers see them under the same name. A part appears under its name when it is complete; a worker
that dies leaves nothing that looks like a result.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twofold import __version__
from twofold.checks.rows import check_numeric
from twofold.cli.arguments import STANDARD, open_model, shown
from twofold.cli.columns import find_columns, latent_names, match_columns, split_names
from twofold.cli.console import CommandError, Console, Interrupted, UsageError, counted, listed
from twofold.cli.describing import how_it_ended, is_still_improving
from twofold.cli.streaming import as_rows
from twofold.contract.lazy_answers import in_a_task, model_task
from twofold.tables.dask_tables import ClusterLostError, DaskTable, compute_all

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel

# What stands for a cluster of worker processes on this machine.
HERE = "local"
# Part files whose columns are looked at by one task.
FILES_AT_A_TIME = 100


@contextmanager
def connected(console: Console, scheduler: str) -> Iterator[Any]:
    """Compute by the scheduler at an address, or by workers of our own, inside the block."""
    from distributed import Client, LocalCluster

    if scheduler == HERE:
        n_workers = os.cpu_count() or 1
        console.say(f"starting {counted(n_workers, 'worker')} on this machine")
        with _interrupts_held():
            # Errors of tasks come here; what else workers say is about how they are ended.
            own = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            )
        with own, Client(own) as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise CommandError(
            f"No scheduler answers at '{scheduler}': {error}",
            "Start one with: dask scheduler, and workers with: dask worker ADDRESS; or use "
            f"--scheduler {HERE} for workers on this machine.",
        ) from error
    try:
        if not client.nthreads():  # a cluster that grows with its work starts without
            console.say(
                "waiting for workers: the scheduler has none "
                f"(start one with: dask worker {scheduler})"
            )
        else:
            _check_versions(client)
        yield client
    except ClusterLostError as error:
        raise CommandError(
            f"The scheduler at '{scheduler}' was lost, or has no workers any more.",
            "Start it again and repeat the command: with another folder for the result, as what "
            "is in this one would be mixed with it. A fit with --checkpoint FILE goes on from its "
            "last checkpoint.",
        ) from error
    finally:
        with suppress(TimeoutError):  # of a scheduler that is gone
            client.close(timeout=5)


def _check_versions(client: Any) -> None:
    """Raise if a worker has no twofold, or another version, whose results may differ."""
    wanted = __version__

    def version() -> str:  # a function inside another is sent as it is: workers need not have it
        from twofold import __version__

        return __version__

    for worker, found in client.run(version, on_error="return").items():
        if found == wanted:
            continue
        there = f"cannot import twofold ({found})" if isinstance(found, Exception) else str(found)
        raise CommandError(
            f"The worker at {worker} has another twofold than this command, {wanted}: {there}.",
            "Install the same version for all workers, and start them again.",
        )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let a Ctrl-C wait until the block ends, and never reach processes of threads started inside.

    A cluster that is half started cannot be closed, and its workers are ended by this process.
    What a thread blocks is blocked in the threads and processes that it starts, workers that
    replace others included.
    """
    if not hasattr(signal, "pthread_sigmask"):  # where there is no such thing
        yield
        return
    from multiprocessing import resource_tracker

    # A thread that starts it, which the first process would do, blocks nothing any more.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_parts(path: str) -> None:
    """Raise if a path does not name files of a kind that workers read."""
    _check_seen_by_all(path)
    if not os.path.isdir(path) and Path(path).suffix.lower() not in (".parquet", ".csv"):
        raise UsageError(
            f"With --scheduler a table is .parquet or .csv files, such as 'data/*.parquet', or a "
            f"folder of .parquet files; got {shown(path)}."
        )


def _check_seen_by_all(path: str) -> None:
    """Raise if an address means something else to every process."""
    if path.startswith("memory://"):
        raise UsageError(
            f"{shown(path)} is in the memory of one process, and workers have their own.",
            "Use files or a store that all workers see.",
        )


def open_parts(path: str) -> Any:
    """Return the dask dataframe of part files, such as ``data/*.parquet``."""
    import dask.dataframe as dd

    read = dd.read_csv if path.lower().endswith(".csv") else dd.read_parquet
    try:
        frame = read(path)
    except (OSError, ImportError, ValueError) as error:
        # dask puts words of its own before those that say what is wrong.
        reason = str(error).rpartition("Original Message: ")[2]
        raise CommandError(f"{shown(path)} cannot be read: {reason}") from error
    if len(frame.columns) == 0:
        raise CommandError(f"No file that holds a table matches {shown(path)}.")
    return frame


def check_alike(path: str, columns: list[str]) -> None:
    """Raise if a part file has other columns than the first one, before anything is computed."""
    import dask
    from fsspec.core import url_to_fs

    store, where = url_to_fs(path)
    found = store.find(where) if store.isdir(where) else store.glob(where)
    files = sorted(name for name in found if name.lower().endswith((".parquet", ".csv")))
    first = _columns_in(store, files[0])
    wanted = {name: first[name] for name in columns if name in first}
    look = dask.delayed(_first_unlike)
    starts = range(0, len(files), FILES_AT_A_TIME)
    looked = [look(store, files[k : k + FILES_AT_A_TIME], wanted) for k in starts]
    try:
        unlike = list(filter(None, compute_all(looked)))
    except FileNotFoundError as error:
        raise CommandError(
            f"A worker does not find a file that is there: {error.filename or error}.",
            "Workers read and write files themselves: put them where all workers see them under "
            "the same path.",
        ) from error
    for file, how, names in unlike:
        raise CommandError(
            f"'{file}' {how} {counted(len(names), 'column')} of '{files[0]}': {listed(names)}.",
            "The columns that are used must be alike in all part files: mend this one, or name "
            "the others.",
        )


def _first_unlike(
    store: Any, files: list[str], wanted: dict[str, bool]
) -> tuple[str, str, list[str]] | None:
    """Return the first of some files whose columns are others, how so, and which these are."""
    for file in files:
        there = _columns_in(store, file)
        if lacking := [name for name in wanted if name not in there]:
            return file, "lacks", lacking
        if unlike := [name for name, is_text in wanted.items() if there[name] != is_text]:
            return file, "has other types in", unlike
    return None


def _columns_in(store: Any, file: str) -> dict[str, bool]:
    """Return the columns of a file, and which are text; those of a CSV file do not say."""
    with store.open(file, "rb") as opened:
        if file.lower().endswith(".csv"):
            return dict.fromkeys(pd.read_csv(opened, nrows=0).columns, False)
        import pyarrow.parquet
        from pyarrow import types

        schema = pyarrow.parquet.read_schema(opened)
    return {
        field.name: types.is_string(field.type) or types.is_large_string(field.type)
        for field in schema
    }


def fit_parts(
    console: Console,
    estimator: TwoWayModel,
    path: str,
    target: str,
    scheduler: str,
    scale: str,
    columns: list[str] | None,
    drop: list[str] | None,
) -> None:
    """Fit to part files where they lie, and write the model."""
    from twofold.scaled import Scaled

    check_parts(path)
    frame = open_parts(path)
    used, left_out = _numbers_of(frame, path, columns, drop)
    console.say(f"columns: {listed(used)}")
    if left_out:
        console.say(f"left out, no numbers: {listed(left_out)}")
    with connected(console, scheduler):
        check_alike(path, used)
        started = time.perf_counter()
        model = estimator if scale == "none" else Scaled(estimator, how=scale)
        with console.warnings_shown():
            model.fit(frame[used].dropna(how="all"))
        seconds = time.perf_counter() - started
        n_rows = len(model.embedding_)
        model.save(target)
    n_iter, reason = int(model.n_iter_), str(model.stop_reason_)
    end = how_it_ended(reason, n_iter, is_still_improving(model), getattr(model, "start_", None))
    console.say(f"fitted {n_rows:,} rows in {seconds:.1f} s: {end}")
    facts = {"model": target, "scale": scale, "rows": n_rows, "columns": used}
    facts |= {"columns_left_out": left_out, "iterations": n_iter, "stop_reason": reason}
    facts |= {"seconds": round(seconds, 3), "objective": float(model.objective_)}
    console.finish(target, facts)


def _numbers_of(
    frame: Any, path: str, columns: list[str] | None, drop: list[str] | None
) -> tuple[list[str], list[str]]:
    """Return the columns to use, and those that hold no numbers."""
    there = list(frame.columns)
    if columns:
        return find_columns(split_names(columns, there), there, path, "--columns names"), []
    dropped = find_columns(split_names(drop, there), there, path, "--drop names")
    wanted = [name for name in there if name not in dropped]
    numbers = [name for name in wanted if getattr(frame.dtypes[name], "kind", "O") in "iufb"]
    if not numbers:
        raise CommandError(f"{shown(path)} has no column of numbers.")
    return numbers, [name for name in wanted if name not in numbers]


def transform_parts(
    console: Console, model_path: str, path: str, output: str, scheduler: str
) -> None:
    """Place the rows of part files on the map, a part file for each."""
    model = open_model(model_path, path)
    names = latent_names(model)
    make = partial(_placed, names=names)
    _write_parts(console, model, path, output, scheduler, make, with_noise=False)


def complete_parts(
    console: Console, model_path: str, path: str, output: str, scheduler: str
) -> None:
    """Fill the missing cells of part files, a part file for each."""
    model = open_model(model_path, path)
    _write_parts(console, model, path, output, scheduler, _filled, with_noise=True)


def _write_parts(
    console: Console,
    model: TwoWayModel,
    path: str,
    output: str,
    scheduler: str,
    make: Callable[..., pd.DataFrame],
    *,
    with_noise: bool,
) -> None:
    if output == STANDARD or Path(output).suffix:
        raise UsageError(
            "With --scheduler the result is part files in a folder that all workers see.",
            "Name it with -o FOLDER.",
        )
    import dask

    check_parts(path)
    frame = open_parts(path)
    features = match_columns(model, list(frame.columns), path).features
    folder = _empty_folder(output)
    with connected(console, scheduler):
        check_alike(path, features)
        table = DaskTable(frame)
        write = dask.delayed(_write)
        task, width = model_task(model, with_noise=with_noise), len(str(len(table.parts)))
        parts = [
            write(make, task, part, features, f"{folder}/part-{number:0{width}}.parquet")
            for number, part in enumerate(table.parts)
        ]
        n_rows = sum(table.lengths)
        try:
            with console.warnings_shown(), console.counting_rows(lambda: n_rows) as advance:
                found = compute_all(parts, lambda done: advance(table.lengths[done - 1]))
        except KeyboardInterrupt:
            raise Interrupted(
                f"Interrupted; the parts that are in {shown(output)} are complete. To begin again, "
                "remove them or name another folder."
            ) from None
    if empty := sum(found):
        console.warn(
            f"{counted(empty, 'row')} of {n_rows:,} without any value in the model's columns: the "
            "results stay empty there."
        )
    facts = {"output": output, "rows": n_rows, "parts": len(parts)}
    console.say(f"{counted(n_rows, 'row')} in {counted(len(parts), 'part')}")
    console.finish(output, facts)


def _empty_folder(output: str) -> str:
    """Return where part files go, a folder without any: older ones would be read with the new."""
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    _check_seen_by_all(output)
    store, where = url_to_fs(output)
    if store.exists(where) and store.glob(f"{where.rstrip('/')}/*.parquet"):
        raise CommandError(
            f"{shown(output)} holds .parquet files already, which would be mixed with the result.",
            "Name a new folder with -o, or remove them first.",
        )
    if not isinstance(store, LocalFileSystem):
        return output.rstrip("/")
    Path(where).mkdir(parents=True, exist_ok=True)  # of file://, too
    return str(Path(where).resolve())


def _write(
    make: Callable[..., pd.DataFrame], model: Any, frame: Any, features: list[str], target: str
) -> int:
    """Write what is made of a part, and return how many rows have no value for the model.

    Under its name a file is complete.
    """
    try:
        with in_a_task():
            found = make(model, frame, features)
    except ValueError as error:
        raise ValueError(f"{error} (in what would have become '{Path(target).name}')") from error
    if is_address(target):
        found.to_parquet(target)  # an object of a store is there when it is complete
    else:
        partly = f"{target}.{os.getpid()}.tmp"
        found.to_parquet(partly)
        os.replace(partly, target)
    return int(frame[features].isna().all(axis=1).sum())


def is_address(path: str) -> bool:
    """Say whether a path is that of a store, such as s3://bucket/parts, and no local one."""
    return "://" in path


def _known_rows(model: Any, frame: pd.DataFrame, features: list[str]) -> tuple[Any, Any]:
    """Return rows as the model takes them, and which of them have a value."""
    rows = frame[features]
    if not model._mixed_columns():
        check_numeric(rows)
        rows = as_rows(model, rows.to_numpy(dtype=np.float64, na_value=np.nan))
    return rows, ~np.asarray(pd.isna(rows)).all(axis=1)


def _placed(model: Any, frame: pd.DataFrame, features: list[str], names: list[str]) -> pd.DataFrame:
    rows, known = _known_rows(model, frame, features)
    X = np.full((len(frame), len(names)), np.nan)
    if known.any():
        X[known] = model.transform(rows[known])
    return pd.DataFrame(X, columns=names, index=frame.index)


def _filled(model: Any, frame: pd.DataFrame, features: list[str]) -> pd.DataFrame:
    rows, known = _known_rows(model, frame, features)
    if not known.any():
        return frame
    made = model.complete(rows[known])
    if not model._mixed_columns():  # cells that were there keep their digits
        whole = np.where(np.isnan(rows[known]), made, rows[known])
        made = pd.DataFrame(whole, columns=features)
    frame, numbers = frame.copy(), np.flatnonzero(known)
    for name in features:
        if frame[name].isna().any():  # others keep their types, too
            frame[name] = made[name].set_axis(numbers).reindex(range(len(frame))).array
    return frame
