"""The words of the language, in one place: ``from mechgap.lang import Bool, minimum, other, …``."""

from mechgap.programs.components import Bool as Bool
from mechgap.programs.components import Choice as Choice
from mechgap.programs.components import Class as Class
from mechgap.programs.components import Component as Component
from mechgap.programs.components import Float as Float
from mechgap.programs.components import Pointer as Pointer
from mechgap.programs.components import Total as Total
from mechgap.programs.conclusions import becomes as becomes
from mechgap.programs.conclusions import first as first
from mechgap.programs.conclusions import grows as grows
from mechgap.programs.conclusions import linked as linked
from mechgap.programs.expressions import edge as edge
from mechgap.programs.expressions import equal as equal
from mechgap.programs.expressions import init as init
from mechgap.programs.expressions import other as other
from mechgap.programs.expressions import self as self
from mechgap.programs.expressions import where as where
from mechgap.programs.expressions import zero as zero
from mechgap.programs.phases import Phase as Phase
from mechgap.programs.phases import keep as keep
from mechgap.programs.phases import maximum as maximum
from mechgap.programs.phases import minimum as minimum
from mechgap.programs.program import GraphProgram as GraphProgram
from mechgap.programs.program import Program as Program
from mechgap.programs.program import fixpoint as fixpoint
