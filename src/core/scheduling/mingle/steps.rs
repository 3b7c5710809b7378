//! The steps of mingling, each kept only when the plan stays legal.

use super::super::checks::{check, crowded};
use super::super::plan::Plan;
use super::super::problem::Problem;
use super::super::turns::Turns;
use super::kind::Minded;
use super::{deal, even};

/// The same plan with alike pods dealt evenly; as it was, as far as that would break a rule (of others that look at these pods' labels, for
/// instance).
pub fn mingled(problem: &Problem<'_>, plan: Plan) -> Plan {
    if plan.claims.is_empty() {
        return plan;
    }
    let minded = Minded::of(problem);
    let mixed = [even::evened, deal::dealt].into_iter().fold(plan, |plan, step| {
        let other = step(&plan, problem, &minded);
        let is_right =
            |other: &Plan| check(problem, other).is_empty() && crowded(problem, other) <= crowded(problem, &plan);
        other.filter(is_right).unwrap_or(plan)
    });
    Turns::new(problem).kept(mixed)
}
