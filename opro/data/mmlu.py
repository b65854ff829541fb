"""MMLU: questions of four choices in 57 subjects, from the test files (14,042 questions).

The files state no split that an optimizer could use: all rows are one pool, as in the authors'
code. 105 questions stand in it twice, most of them in two subjects. Subjects are read in
alphabetical order; the authors' order is that of their file system, so their draw over several
subjects can't be repeated row for row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opro.data import files
from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError, nearest
from opro.types import Task

CATEGORIES: dict[str, tuple[str, ...]] = {
    category: tuple(subjects.split())
    for category, subjects in {
        "STEM": """
            abstract_algebra astronomy college_biology college_chemistry college_computer_science
            college_mathematics college_physics computer_security conceptual_physics
            electrical_engineering elementary_mathematics high_school_biology
            high_school_chemistry high_school_computer_science high_school_mathematics
            high_school_physics high_school_statistics machine_learning""",
        "humanities": """
            formal_logic high_school_european_history high_school_us_history
            high_school_world_history international_law jurisprudence logical_fallacies
            moral_disputes moral_scenarios philosophy prehistory professional_law
            world_religions""",
        "social sciences": """
            econometrics high_school_geography high_school_government_and_politics
            high_school_macroeconomics high_school_microeconomics high_school_psychology
            human_sexuality professional_psychology public_relations security_studies sociology
            us_foreign_policy""",
        "other": """
            anatomy business_ethics clinical_knowledge college_medicine global_facts human_aging
            management marketing medical_genetics miscellaneous nutrition professional_accounting
            professional_medicine virology""",
    }.items()
}
SUBJECTS = {subject: name for name, subjects in CATEGORIES.items() for subject in subjects}
LETTERS = "ABCD"
WANTED = (
    "the folder with <subject>_test.csv files, or the one above its folder test "
    "(data/MMLU-data of google-deepmind/opro)"
)


@dataclass(kw_only=True)
class Mmlu(Loader):
    """Some subjects of MMLU; the field is `question`, choices and closing question included.

    A task's id is `mmlu-<subject>-<index in its file>`, its answer the letter; extra holds
    `subject`, `category` and `choices` (texts, A first).

    Attributes:
        subjects: `all`, a category (STEM, humanities, social sciences, other), a subject, or a
            list of categories and subjects.
    """

    path: str | None = None
    subjects: str | list[str] = "all"

    def read(self) -> Source:
        """See Loader."""
        base = files.folder(self.path, WANTED)
        base = base / "test" if (base / "test").is_dir() else base
        rows = [row for subject in self._names() for row in _subject(base, subject)]
        wanted = self.subjects if isinstance(self.subjects, str) else ", ".join(self.subjects)
        return Source(name=f"mmlu/{wanted}", source=str(base), rows=rows)

    def _names(self) -> list[str]:
        known = {"all": tuple(SUBJECTS), **CATEGORIES, **{name: (name,) for name in SUBJECTS}}
        wanted = [self.subjects] if isinstance(self.subjects, str) else self.subjects
        for name in wanted:
            if name not in known:
                allowed = f"allowed are {', '.join(known)}"
                raise ConfigError(f"data.subjects={name}: unknown{nearest(name, known)}; {allowed}")
        if not wanted:
            raise ConfigError("data.subjects=[]: one category or subject or more is wanted")
        return sorted({subject for name in wanted for subject in known[name]})


def _subject(base: Path, subject: str) -> Iterator[Row]:
    path = files.member(base, (f"{subject}_test.csv",), WANTED)
    for index, (line, row) in enumerate(files.cells(path, ",")):
        where = f"{path}:{line}"
        if len(row) != 6 or row[5] not in tuple(LETTERS):
            raise ConfigError(f"{where}: a question, four choices and a letter A to D are wanted")
        choices = row[1:5]
        extra = {"subject": subject, "category": SUBJECTS[subject], "choices": choices}
        fields = {"question": _shown(row[0], choices)}
        task = Task(id=f"mmlu-{subject}-{index}", fields=fields, answer=row[5], extra=extra)
        yield Row(task=task, where=where)


def _shown(question: str, choices: list[str]) -> str:
    """Return the text that the authors' scorer prompt shows."""
    options = "".join(f"\n({letter}) {text}" for letter, text in zip(LETTERS, choices, strict=True))
    return f"{question}{options}\nWhat's the answer in (A) (B) (C) (D)?"
