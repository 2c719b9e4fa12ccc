//! Calls that come again, models that stand in, and tools that are one too many.

use turnwire_event::code::ToolErrorClass;

use super::*;

#[test]
fn retried_model_call_counts_as_one_call() {
    let mut waiting = TurnBuilder::routed();
    waiting.unheard(1);
    assert_eq!(classify_cancel(&waiting.cancelled()), Ok(CancelCase::Idle));
    let mut second = TurnBuilder::routed();
    second.unheard(1);
    second.attempt(2);
    second.message();
    assert_eq!(classify_cancel(&second.cancelled()), Ok(CancelCase::Llm));
}

#[test]
fn fallback_model_is_used_only_before_first_output() {
    let mut turn = TurnBuilder::routed();
    turn.unheard(1);
    turn.route();
    turn.attempt(2);
    turn.message();
    assert_eq!(classify_cancel(&turn.cancelled()), Ok(CancelCase::Llm));
    let mut twice = TurnBuilder::routed();
    twice.route();
    assert!(classify_cancel(&twice.cancelled()).is_err());
    let mut answered = TurnBuilder::routed();
    answered.asks();
    answered.route();
    assert!(classify_cancel(&answered.cancelled()).is_err());
}

#[test]
fn tool_beyond_limit_is_answered_without_a_call() {
    let mut turn = TurnBuilder::routed();
    let [a, b] = turn.asks();
    turn.say(Body::ToolFailed(tool::ToolFailed {
        upstream_id: None,
        tool_use_id: b,
        tool_name: "echo".into(),
        tool_type: ToolType::Function,
        error_class: ToolErrorClass::InvalidInput,
        called: false,
    }));
    turn.called(a);
    assert_eq!(classify_cancel(&turn.cancelled()), Ok(CancelCase::Tool));
}
