//! The platform's own texts, for packs that do not bring their own. First person, no codes.

pub(super) const TEXTS: [(&str, &str, &str); 21] = [
    ("en", "combined", "{phrases}…"),
    ("en", "prior_context.question", "Earlier the person asked:"),
    ("en", "prior_context.answer", "The answer was:"),
    (
        "en",
        "failure.sub_agent",
        "I could not find that out right now. Please try again in a moment.",
    ),
    (
        "en",
        "failure.internal",
        "Something went wrong on my side. Please try again.",
    ),
    (
        "en",
        "failure.model",
        "The language model is not available right now. Please try again in a moment.",
    ),
    (
        "en",
        "failure.rate_limit",
        "I have too much to do right now. Please try again in a moment.",
    ),
    ("de", "combined", "{phrases}…"),
    ("de", "prior_context.question", "Zuvor wurde gefragt:"),
    ("de", "prior_context.answer", "Die Antwort war:"),
    (
        "de",
        "failure.sub_agent",
        "Das konnte ich gerade nicht herausfinden. Bitte versuche es gleich noch einmal.",
    ),
    (
        "de",
        "failure.internal",
        "Bei mir ist etwas schiefgegangen. Bitte versuche es noch einmal.",
    ),
    (
        "de",
        "failure.model",
        "Das Sprachmodell ist gerade nicht erreichbar. Bitte versuche es gleich noch einmal.",
    ),
    (
        "de",
        "failure.rate_limit",
        "Ich habe gerade zu viel zu tun. Bitte versuche es gleich noch einmal.",
    ),
    ("es", "combined", "{phrases}…"),
    ("es", "prior_context.question", "Antes se preguntó:"),
    ("es", "prior_context.answer", "La respuesta fue:"),
    (
        "es",
        "failure.sub_agent",
        "Ahora mismo no he podido averiguarlo. Inténtalo de nuevo en un momento, por favor.",
    ),
    (
        "es",
        "failure.internal",
        "Algo ha fallado por mi parte. Inténtalo de nuevo, por favor.",
    ),
    (
        "es",
        "failure.model",
        "El modelo de lenguaje no está disponible ahora mismo. Inténtalo de nuevo en un momento, por favor.",
    ),
    (
        "es",
        "failure.rate_limit",
        "Ahora mismo tengo demasiado que hacer. Inténtalo de nuevo en un momento, por favor.",
    ),
];
