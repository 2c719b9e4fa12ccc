//! Calls that come again, models that stand in, and tools that are one too many.

use turnwire_event::code::ToolErrorClass;

use super::*;

#[test]
fn retried_model_call_counts_as_one_call() {
    let mut waiting = Told::routed();
    waiting.unheard(1);
    assert_eq!(cancel_case(&waiting.cancelled()), Ok(Case::Idle));
    let mut second = Told::routed();
    second.unheard(1);
    second.attempt(2);
    second.message();
    assert_eq!(cancel_case(&second.cancelled()), Ok(Case::Llm));
}

#[test]
fn fallback_model_is_used_only_before_first_output() {
    let mut told = Told::routed();
    told.unheard(1);
    told.route();
    told.attempt(2);
    told.message();
    assert_eq!(cancel_case(&told.cancelled()), Ok(Case::Llm));
    let mut twice = Told::routed();
    twice.route();
    assert!(cancel_case(&twice.cancelled()).is_err());
    let mut heard = Told::routed();
    heard.asks();
    heard.route();
    assert!(cancel_case(&heard.cancelled()).is_err());
}

#[test]
fn tool_beyond_limit_is_answered_without_a_call() {
    let mut told = Told::routed();
    let [a, b] = told.asks();
    told.say(Body::ToolFailed(tool::ToolFailed {
        tool_use_id: b,
        tool_name: "echo".into(),
        tool_type: ToolType::Function,
        error_class: ToolErrorClass::InvalidInput,
        called: false,
    }));
    told.called(a);
    assert_eq!(cancel_case(&told.cancelled()), Ok(Case::Tool));
}
