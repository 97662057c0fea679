"""Linear and mixed-integer programs on HiGHS: the only file that names the solver.

A `Program` keeps its last basis: a program that differs a little from the one before is solved in a few steps.
One thread and fixed seeds, so equal programs have equal answers.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.progress import Progress, report

TIGHT_TOLERANCE = 1e-9
"""Feasibility tolerance of the solver where a first answer was not exact enough."""

START_STEPS = 20
"""Cost of starting the solver, in steps of the simplex method."""

INTERIOR_STEPS = 300
"""Cost of one iteration of the interior-point method, in steps of the simplex method."""

COLUMN_WISE, MINIMISE = 1, 1
"""The solver's numbers for a matrix by columns and for a minimum."""

MIN_WATCHED_COLUMNS = 10_000
"""Columns from which on a program reports from inside: the solver asks a thousand times in a small one."""

MIN_SECONDS_BETWEEN_SIGNS = 0.2

EXPECTED_ITERATIONS = 60
"""Iterations of the interior-point method that progress is measured by."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The optimum of a program: a value for each column, a price for each row, and a bound no solution beats."""

    values: Floats
    prices: Floats
    objective: float
    bound: float
    complete: bool = True


class Unbounded(Exception):
    """The objective of a program is unbounded."""


class Program:
    """A linear program: minimise cost @ x, subject to below <= matrix @ x <= above and low <= x <= high.

    Cost: that of the simplex method from the last basis; the matrix is held once. `work` counts steps times columns: a
    measure of time that is the same on every machine. `reduced` programs are made smaller by the solver first. `after`
    is a program with the same options that is no longer needed: its solver is used again, which saves starting one.

    >>> import scipy.sparse as sparse
    >>> program = Program(sparse.csc_array([[1.0, 1.0]]), np.array([1.0, 2.0]), np.zeros(2), np.full(2, 3.0), 4.0, 4.0)
    >>> program.solve().values.tolist()
    [3.0, 1.0]
    """

    def __init__(
        self, matrix: Any, cost: Floats, low: Floats, high: Floats, below: Any = 0.0, above: Any = 0.0, *,
        primal: bool = False, interior: bool = False, corner: bool = False, reduced: bool = False,
        after: "Program | None" = None,
    ) -> None:  # fmt: skip
        import highspy

        self.kinds = highspy.HighsModelStatus
        self.rows, self.columns = matrix.shape
        self.fresh = True
        self.work = 0
        self.what = ""
        self.most = np.inf
        if after is not None:
            self.highs: Any = after.highs
            self.most = after.most
            self.highs.setOptionValue("presolve", "on" if reduced else "off")
            self._pass(matrix.tocsc(), cost, low, high, below, above)
            return
        self.highs = highspy.Highs()  # type: ignore[no-untyped-call]
        options: dict[str, Any] = {
            "output_flag": False,
            "presolve": "on" if reduced else "off",
            "solver": "simplex",
            "threads": 1,
            "random_seed": 1,
        }
        options |= {"simplex_strategy": 4} if primal else {}
        crossing = "on" if corner else "off"
        options |= {"solver": "ipm", "presolve": "on", "run_crossover": crossing} if interior else {}
        for name, value in options.items():
            self.highs.setOptionValue(name, value)
        self._pass(matrix.tocsc(), cost, low, high, below, above)

    def _pass(self, matrix: Any, cost: Floats, low: Floats, high: Floats, below: Any, above: Any) -> None:
        rows = [np.broadcast_to(np.asarray(side, dtype=float), self.rows) for side in (below, above)]
        self.highs.passModel(
            self.columns, self.rows, matrix.nnz, COLUMN_WISE, MINIMISE, 0.0, cost, low, high, *rows,
            matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data,
            np.zeros(self.columns, dtype=np.int32),
        )  # fmt: skip

    def bound(self, columns: Integers, low: Floats, high: Floats) -> None:
        """Change the limits of some columns."""
        self.highs.changeColsBounds(len(columns), columns.astype(np.int32), low, high)

    def confine(self, below: Floats, above: Floats) -> None:
        """Change the limits of all rows."""
        self.highs.changeRowsBounds(self.rows, np.arange(self.rows, dtype=np.int32), below, above)

    def charge(self, columns: Integers, cost: Floats) -> None:
        """Change the costs of some columns."""
        self.highs.changeColsCost(len(columns), columns.astype(np.int32), cost)

    def demand(self, rows: Any, below: Floats) -> None:
        """Add constraints rows @ x >= below."""
        rows = rows.tocsr()
        above = np.full(rows.shape[0], np.inf)
        self.highs.addRows(
            rows.shape[0], below, above, rows.nnz,
            rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32), rows.data,
        )  # fmt: skip
        self.rows += rows.shape[0]

    def restart(self) -> None:
        """Forget the last basis: for a program that has little in common with the one before."""
        self.highs.clearSolver()
        self.fresh = True

    def sharpen(self) -> None:
        """Use the tightest tolerances from now on."""
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.highs.setOptionValue(name, TIGHT_TOLERANCE)

    def whole(self, columns: Integers, *, seconds: float = np.inf, gap: float = 0.0, nodes: int | None = None) -> None:
        """Require integers in these columns; stop at a time, a relative gap or a number of search nodes."""
        import highspy

        kind = np.array([highspy.HighsVarType.kInteger] * len(columns))
        self.highs.changeColsIntegrality(len(columns), columns.astype(np.int32), kind)
        self.highs.setOptionValue("presolve", "choose")
        self.highs.setOptionValue("solver", "choose")
        self.highs.setOptionValue("mip_rel_gap", max(gap, 0.0))
        if nodes is not None:
            self.highs.setOptionValue("mip_max_nodes", nodes)
        self.limit(seconds)

    def limit(self, seconds: float) -> None:
        """Set a time limit from now; the bound reached so far is kept."""
        self.highs.setOptionValue("time_limit", float(min(seconds + self.highs.getRunTime(), 1e20)))

    def suggest(self, values: Floats) -> None:
        """Give a solution to start the integer search from."""
        columns = np.arange(self.columns, dtype=np.int32)
        self.highs.setSolution(self.columns, columns, values)

    def solve(self, *, certain: bool = True, most: float = np.inf) -> Solution | None:
        """The optimum, or None when no solution exists. Raises `Unbounded` when there is no limit.

        Infeasibility is accepted only of a program solved from scratch, for an old basis can mislead; unless the
        caller need not be `certain`. The dual simplex method stops, with None, once the optimum is proven above `most`.
        """
        fresh, self.fresh = self.fresh, False
        if most != self.most:
            self.highs.setOptionValue("objective_bound", float(most))
            self.most = most
        self.highs.run()
        status = self.highs.getModelStatus()
        limits = (self.kinds.kTimeLimit, self.kinds.kSolutionLimit, self.kinds.kObjectiveBound)
        ends = (self.kinds.kOptimal, self.kinds.kInterrupt, *limits)
        if not fresh and status not in ends and (certain or status != self.kinds.kInfeasible):
            self.highs.clearSolver()
            self.highs.run()
            status = self.highs.getModelStatus()
        if status == self.kinds.kUnknown:
            status = self._solve_otherwise()
        self.work += (START_STEPS + max(int(self.highs.getInfo().simplex_iteration_count), 0)) * self.columns
        return self._read(status)

    def _solve_otherwise(self) -> Any:
        """Solve once by the solver's own choice of method, where the one that was asked for gave no answer."""
        usual = {name: self.highs.getOptionValue(name)[1] for name in ("presolve", "solver", "simplex_strategy")}
        self.highs.clearSolver()
        for name, value in {"presolve": "on", "solver": "choose", "simplex_strategy": 1}.items():
            self.highs.setOptionValue(name, value)
        self.highs.run()
        status = self.highs.getModelStatus()
        for name, value in usual.items():
            self.highs.setOptionValue(name, value)
        return status

    def inner(self, progress: Progress | None = None, what: str = "") -> Floats | None:
        """A solution inside the best face (at a `corner` if so made), by interior point; None when there is none.

        A large program reports its iterations. What is returned meets the rows to the solver's rounding: check it
        before it is used.
        """
        if progress is not None and self.columns >= MIN_WATCHED_COLUMNS:
            self.watch(progress, what)
        elif progress is not None:
            report(progress, 0, EXPECTED_ITERATIONS, what)
        self.highs.run()
        self.work += INTERIOR_STEPS * max(int(self.highs.getInfo().ipm_iteration_count), 1) * self.columns
        self._refuse_interrupted()
        values = np.array(self.highs.getSolution().col_value)
        return values if self.highs.getModelStatus() == self.kinds.kOptimal and len(values) else None

    def watch(self, progress: Progress, what: str) -> None:
        """Report a sign of life a few times a second, and stop with `Cancelled` when the answer is False."""
        import highspy

        last = time.monotonic()

        def sign(kind: Any, message: str, given: Any, answer: Any, data: Any) -> None:
            nonlocal last
            if time.monotonic() - last < MIN_SECONDS_BETWEEN_SIGNS:
                return
            last = time.monotonic()
            count = max(int(given.ipm_iteration_count), 0)
            answer.user_interrupt = progress(min(count, EXPECTED_ITERATIONS - 1), EXPECTED_ITERATIONS, what) is False

        self.what = what
        self.highs.setCallback(sign, None)
        kinds = highspy.cb.HighsCallbackType
        for kind in (kinds.kCallbackIpmInterrupt, kinds.kCallbackSimplexInterrupt, kinds.kCallbackMipInterrupt):
            self.highs.startCallback(kind)

    def _refuse_interrupted(self) -> None:
        if self.highs.getModelStatus() == self.kinds.kInterrupt:
            report(lambda *_: False, 0, 1, self.what)

    def _read(self, status: Any) -> Solution | None:
        self._refuse_interrupted()
        if status in (self.kinds.kOptimal, self.kinds.kTimeLimit, self.kinds.kSolutionLimit):
            return self._answer(status == self.kinds.kOptimal)
        if status in (self.kinds.kInfeasible, self.kinds.kObjectiveBound):
            return None
        if status in (self.kinds.kUnbounded, self.kinds.kUnboundedOrInfeasible):
            raise Unbounded
        raise EngineError(f"The solver stopped without an answer ({self.highs.modelStatusToString(status)}).")

    def _answer(self, complete: bool) -> Solution:
        solution, info = self.highs.getSolution(), self.highs.getInfo()
        objective = info.objective_function_value
        bound = info.mip_dual_bound if not complete or info.mip_node_count >= 0 else objective
        return Solution(np.array(solution.col_value), np.array(solution.row_dual), objective, bound, complete)
