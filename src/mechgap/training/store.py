"""The run folder: what was asked for, how far it is, what came out. Nothing is half-written.

    recipe.toml       the recipe, to read
    run.sqlite        recipe, versions, seeds, metrics, what was seen at snapshots, checksums
                      (any SQLite tool reads it)
    seeds/            each finished seed's last and best parameters, as safetensors
    checkpoints/      where unfinished chunks stand, as safetensors

A file is written beside its place, flushed to disk and moved there; then one SQLite transaction
records its checksum together with the metrics that belong to it. So after a crash at any moment the
database describes files that are whole. What fails its checksum is done again, and said so.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from filelock import FileLock, Timeout
from safetensors.numpy import load as load_tensors

from mechgap.disk import write_file
from mechgap.errors import InvalidInput
from mechgap.network.files import load_network, network_bytes, packed
from mechgap.network.network import Network
from mechgap.network.pairwise import runs_natively
from mechgap.training.population import Learner
from mechgap.training.presets import recipe_from, to_toml
from mechgap.training.provenance import Provenance
from mechgap.training.recipe import Recipe
from mechgap.training.rows import SCHEMA, MetricRow, Notes, Observation, SeedRow

DATABASE = "run.sqlite"
LOCK = ".lock"


class Store:
    """A run folder that is open."""

    def __init__(self, folder: Path, connection: sqlite3.Connection):
        self.folder, self._db = folder, connection

    # Opening

    @staticmethod
    @contextmanager
    def writing(folder: Path, recipe: Recipe, chunk: int) -> Iterator["Store"]:
        """Open a run for training, or begin it. One process at a time; one recipe for good."""
        with _disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                held = FileLock(folder / LOCK).acquire(timeout=0)
            except Timeout as error:
                raise InvalidInput(
                    f"another process is working on '{folder}'. Wait for it, stop it, or "
                    "choose another folder"
                ) from error
            with held:
                _check_empty(folder)
                store = Store(folder, _connect(folder))
                try:
                    store._begin(recipe, chunk)
                    yield store
                finally:
                    store._db.close()

    @staticmethod
    def check(folder: Path, recipe: Recipe, chunk: int) -> None:
        """Refuse a folder that this recipe cannot be trained in; nothing is written."""
        if not (folder / DATABASE).exists():
            _check_empty(folder)
            return
        with Store.reading(folder) as store:
            store._check_same(recipe, chunk)

    @staticmethod
    @contextmanager
    def reading(folder: Path) -> Iterator["Store"]:
        """Open a run to look at it, also while it is trained."""
        if not (folder / DATABASE).is_file():
            raise InvalidInput(f"'{folder}' is not a run: it has no {DATABASE}")
        try:
            store = Store(folder, _connect(folder))
            try:
                _ = store.recipe  # a foreign database fails here
                yield store
            finally:
                store._db.close()
        except sqlite3.DatabaseError as error:
            raise InvalidInput(f"'{folder / DATABASE}' is damaged: {error}") from error

    def _begin(self, recipe: Recipe, chunk: int) -> None:
        stored = self._about()
        if "recipe" not in stored:
            made = {
                "recipe": recipe.data(),
                "chunk": chunk,
                "native": [runs_natively(1)],
                **vars(Provenance.now()),
            }
            with self._db:
                rows = [(name, json.dumps(value)) for name, value in made.items()]
                self._db.executemany("INSERT INTO about VALUES (?, ?)", rows)
            write_file(self.folder / "recipe.toml", to_toml(recipe).encode())
            return
        self._check_same(recipe, chunk)
        self._set_about("native", sorted({*stored.get("native", ()), runs_natively(1)}))

    def _check_same(self, recipe: Recipe, chunk: int) -> None:
        changes = self.recipe.differences(recipe)
        if (stored := self._about()["chunk"]) != chunk:
            changes.append(f"chunk: {stored} → {chunk}")
        if changes:
            raise InvalidInput(
                f"'{self.folder}' was begun with another configuration ({'; '.join(changes)}). "
                "Use the same one, or another folder"
            )

    # Looking

    def _about(self) -> dict[str, Any]:
        return {n: json.loads(v) for n, v in self._db.execute("SELECT name, value FROM about")}

    @property
    def about(self) -> dict[str, Any]:
        """Recipe, chunk size, versions, commit, speed, and whether native code computed it (both,
        if that was not the same all the time)."""
        return self._about()

    @property
    def rate(self) -> float | None:
        """Seed-steps per second the last time that it was trained; None where nobody noted it."""
        return self._about().get("rate")

    def note_rate(self, rate: float) -> None:
        """Keep how fast training went."""
        self._set_about("rate", rate)

    def _set_about(self, name: str, value: Any) -> None:
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO about VALUES (?, ?)", [name, json.dumps(value)]
            )

    @property
    def recipe(self) -> Recipe:
        """The run's recipe."""
        stored = self._about()
        if "recipe" not in stored:
            raise InvalidInput(f"'{self.folder}' is not a run of mechgap, or was never begun")
        return recipe_from(stored["recipe"])

    def seeds(self) -> list[SeedRow]:
        """All seeds, in order."""
        return [SeedRow(*row) for row in self._db.execute("SELECT * FROM seeds ORDER BY seed")]

    def metrics(self, seed: int | None = None) -> list[MetricRow]:
        """Every report of one seed or of all, by seed and step."""
        where = "" if seed is None else " WHERE seed = ?"
        query = f"SELECT * FROM metrics{where} ORDER BY seed, step"
        return [MetricRow(*row) for row in self._db.execute(query, () if seed is None else (seed,))]

    def network(self, seed: int, which: str = "best") -> Network:
        """A finished seed's parameters: `best` (by validation) or `last`."""
        name = _seed_file(seed, which)
        finished = [row.seed for row in self.seeds() if row.state == "finished"]
        if seed not in finished:
            have = f"finished are {', '.join(map(str, finished))}" if finished else "none is"
            raise InvalidInput(f"seed {seed} of '{self.folder}' is not finished; {have}")
        if not self._is_whole(name):
            raise InvalidInput(
                f"'{self.folder / name}' is missing or damaged. Run the training command again: it "
                "will be made again"
            )
        return load_network(self.folder / name)[0]

    def observations(self) -> list[Observation]:
        """What was seen of all seeds on their way, by seed and step; the best after the rest."""
        query = "SELECT * FROM observations ORDER BY seed, which DESC, step"
        return [Observation(*row) for row in self._db.execute(query)]

    # Writing

    def expect(self, seeds: Sequence[int]) -> None:
        """Note which seeds are wanted."""
        with self._db:
            rows = [(seed, "waiting", 0) for seed in seeds]
            self._db.executemany(
                "INSERT OR IGNORE INTO seeds (seed, state, step) VALUES (?, ?, ?)", rows
            )

    def is_finished(self, seeds: Sequence[int]) -> bool:
        """Whether all of these are finished and their files are whole."""
        rows = {row.seed: row.state for row in self.seeds()}
        return all(
            rows.get(seed) in {"finished", "diverged"}
            and all(self._is_whole(_seed_file(seed, which)) for which in ("best", "last"))
            for seed in seeds
        )

    def step_reached(self, seeds: Sequence[int]) -> tuple[int, str | None]:
        """The step that a chunk has reached; and what had to be thrown away, if anything."""
        known = {row.seed: row for row in self.seeds()}
        if all(known[seed].step == 0 for seed in seeds):
            return 0, None
        name = self._checkpoint_of(seeds)
        if name is not None and self._is_whole(name):
            return known[seeds[0]].step, None
        self.forget(seeds)
        return 0, f"a file of {_span(seeds)} is missing or damaged: trained again from the start"

    def resume(self, seeds: Sequence[int], like: Learner) -> Learner:
        """A chunk's learners from its checkpoint; `like` has their structure."""
        name = self._checkpoint_of(seeds)
        assert name is not None
        return _unpack((self.folder / name).read_bytes(), like)

    def forget(self, seeds: Sequence[int]) -> None:
        """Throw away what was done for these seeds."""
        names = [_seed_file(seed, which) for seed in seeds for which in ("best", "last")]
        names += [name] if (name := self._checkpoint_of(seeds)) else []
        with self._db:
            for seed in seeds:
                for table in ("metrics", "observations"):
                    self._db.execute(f"DELETE FROM {table} WHERE seed = ?", (seed,))
                self._db.execute("DELETE FROM seeds WHERE seed = ?", (seed,))
            self._db.executemany("DELETE FROM files WHERE name = ?", [(name,) for name in names])
            self._db.execute("DELETE FROM checkpoints WHERE chunk = ?", (_chunk(seeds),))
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
        self.expect(seeds)

    def checkpoint(self, seeds: Sequence[int], learners: Learner, notes: Notes) -> None:
        """Record where a chunk stands, with what was noted since the last time.

        The last checkpoint's file stays until the database names the new one.
        """
        data, step = _pack(learners), int(np.asarray(learners.step)[0])
        name = f"checkpoints/{_chunk(seeds)}-step-{step}.safetensors"
        old = self._checkpoint_of(seeds)
        with _disk_errors(self.folder):
            self._write(name, data)
            with self._db:
                self._note(learners, notes, {name: data}, finished=False)
                self._db.execute(
                    "INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (_chunk(seeds), name)
                )
                if old and old != name:
                    self._db.execute("DELETE FROM files WHERE name = ?", (old,))
            if old and old != name:
                (self.folder / old).unlink(missing_ok=True)

    def finish(self, seeds: Sequence[int], learners: Learner, notes: Notes) -> None:
        """Record a chunk's last and best parameters; it needs no checkpoint any more."""
        files = {}
        for i, seed in enumerate(seeds):
            one = jax.tree.map(lambda x, i=i: np.asarray(x)[i], learners)
            about = {"seed": seed, "recipe": self.recipe.data()}
            for which, network, step in (
                ("last", one.network, one.step),
                ("best", one.best, one.best_step),
            ):
                data = network_bytes(network, {**about, "step": int(step)})
                files[_seed_file(seed, which)] = data
        old = self._checkpoint_of(seeds)
        with _disk_errors(self.folder):
            for name, data in files.items():
                self._write(name, data)
            with self._db:
                self._note(learners, notes, files, finished=True)
                self._db.execute("DELETE FROM checkpoints WHERE chunk = ?", (_chunk(seeds),))
                self._db.execute("DELETE FROM files WHERE name = ?", (old,))
            if old:
                (self.folder / old).unlink(missing_ok=True)

    def put(
        self,
        seed: int,
        network: Network,
        validation: float | None,
        test: float | None,
        note: str,
    ) -> None:
        """Record a network that was trained elsewhere as a finished seed."""
        data = network_bytes(network, {"seed": seed, "note": note})
        files = {_seed_file(seed, which): data for which in ("best", "last")}
        with _disk_errors(self.folder):
            for name in files:
                self._write(name, data)
            row = SeedRow(seed, "finished", 0, 0, validation, test, test)
            with self._db:
                self._save_files(files)
                self._db.execute(_SAVE_SEED, astuple(row))

    def adopt(self, other: "Store", seed: int) -> None:
        """Take over a finished seed of another run."""
        (row,) = [row for row in other.seeds() if row.seed == seed]
        with _disk_errors(self.folder):
            taken = {}
            for which in ("best", "last"):
                name = _seed_file(seed, which)
                if not other._is_whole(name):
                    raise InvalidInput(f"'{other.folder / name}' is missing or damaged")
                taken[name] = (other.folder / name).read_bytes()
                self._write(name, taken[name])
            with self._db:
                seen = [row for row in other.observations() if row.seed == seed]
                self._save_notes(Notes(other.metrics(seed), seen))
                self._save_files(taken)
                self._db.execute(_SAVE_SEED, astuple(row))

    def _note(
        self,
        learners: Learner,
        notes: Notes,
        files: Mapping[str, bytes],
        finished: bool,
    ) -> None:
        """Everything about a chunk that goes into one transaction."""
        self._save_notes(notes)
        self._save_files(files)
        latest = {row.seed: row for row in notes.metrics}
        for i, seed in enumerate(np.asarray(learners.seed).tolist()):
            diverged = int(learners.diverged_at[i])
            state = "training" if not finished else "finished" if diverged < 0 else "diverged"
            row = latest.get(seed)
            self._db.execute(
                _SAVE_SEED,
                (
                    seed,
                    state,
                    int(learners.step[i]),
                    int(learners.best_step[i]),
                    _number(learners.best_validation[i]),
                    row.test if row else None,
                    row.test_of_best if row else None,
                    diverged if diverged >= 0 else None,
                ),
            )

    def _save_notes(self, notes: Notes) -> None:
        rows = [tuple(_number(value) for value in astuple(row)) for row in notes.metrics]
        self._db.executemany("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        seen = [astuple(row) for row in notes.observations]
        self._db.executemany("INSERT OR REPLACE INTO observations VALUES (?, ?, ?, ?, ?)", seen)

    def _save_files(self, files: Mapping[str, bytes]) -> None:
        rows = [(name, hashlib.sha256(data).hexdigest()) for name, data in files.items()]
        self._db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?)", rows)

    def _checkpoint_of(self, seeds: Sequence[int]) -> str | None:
        query = "SELECT file FROM checkpoints WHERE chunk = ?"
        row = self._db.execute(query, (_chunk(seeds),)).fetchone()
        return row[0] if row else None

    def _is_whole(self, name: str) -> bool:
        row = self._db.execute("SELECT sha256 FROM files WHERE name = ?", (name,)).fetchone()
        path = self.folder / name
        if row is None or not path.is_file():
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == row[0]

    def _write(self, name: str, data: bytes) -> None:
        write_file(self.folder / name, data)


_SAVE_SEED = "INSERT OR REPLACE INTO seeds VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


def _check_empty(folder: Path) -> None:
    """Refuse to begin a run among other files."""
    is_new = folder.is_dir() and not (folder / DATABASE).exists()
    if is_new and any(p.name != LOCK for p in folder.iterdir()):
        raise InvalidInput(f"'{folder}' holds other files and is not a run. Choose a new folder")


def _connect(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / DATABASE, timeout=30)
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(SCHEMA)
    return connection


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """A full or failing disk is a clear error; what was there before stays whole."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        raise InvalidInput(
            f"cannot write to '{folder}': {error}. What was recorded before is whole; make room "
            "and run the same command again"
        ) from error
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"'{folder / DATABASE}' is damaged: {error}") from error


def _pack(learners: Learner) -> bytes:
    leaves, _ = jax.tree_util.tree_flatten_with_path(learners)
    return packed({jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}, {})


def _unpack(data: bytes, like: Learner) -> Learner:
    stored = load_tensors(data)
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    return jax.tree.unflatten(
        structure, [jnp.asarray(stored[jax.tree_util.keystr(path)]) for path, _ in leaves]
    )


def _chunk(seeds: Sequence[int]) -> str:
    return f"seeds-{seeds[0]}-{seeds[-1]}"


def _span(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _seed_file(seed: int, which: str) -> str:
    return f"seeds/{seed:05d}-{which}.safetensors"


def _number(value: Any) -> Any:
    """A number for the database, which has no NaN: there it is null."""
    if value is None or isinstance(value, int):
        return value
    return float(value) if np.isfinite(value) else None


def is_worked_on(folder: Path) -> bool:
    """Whether a process is training in a run folder."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True
