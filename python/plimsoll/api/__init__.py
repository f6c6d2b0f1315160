"""The Python API: the answers of `plimsoll plan` and `plimsoll run` as objects.

    plan       a language model, from its name or configuration        -> Plan
    estimate   a function or a script of yours, on the pretend GPU     -> Estimate
    pretend    a block of code in a process that `plimsoll run` began  -> Card

`plan` and `estimate` start the plimsoll command; `pretend` uses the pretend GPU of its own process. Only `pretend` imports torch.

    installation      where the command is            model_plan, model_argument   plan
    command           runs it, returns its answer     function_estimate            estimate
    result, parts     the answer; its values          payload, main_module, child  the way of a function into the child
    notebook          the answer as HTML              output                       the way of its prints back
    card              pretend
"""

from plimsoll.api.card import Card, NotPretending, pretend
from plimsoll.api.function_estimate import Estimate, EstimateError, estimate
from plimsoll.api.installation import InstallationError
from plimsoll.api.model_plan import Plan, plan
from plimsoll.api.result import Result

__all__ = [
    "Card",
    "Estimate",
    "EstimateError",
    "InstallationError",
    "NotPretending",
    "Plan",
    "Result",
    "estimate",
    "plan",
    "pretend",
]
