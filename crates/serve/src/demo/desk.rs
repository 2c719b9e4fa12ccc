//! The outside response service that the support assistant asks: one answer for each thing that
//! people write to support about.

use serde_json::{Value, json};

use super::ledger::number_of;
use super::tongue::Tongue;
use super::words::Query;

struct Topic {
    id: &'static str,
    /// Beginnings of words that belong to it, without case and accents.
    names: &'static [&'static str],
    /// In English, German and Spanish.
    answer: [&'static str; 3],
}

/// The first that fits is answered; the last fits everything.
const TOPICS: &[Topic] = &[
    Topic {
        id: "refund",
        names: &[
            "refund", "return", "money", "erstatt", "ruckgabe", "zuruck", "geld", "reembols",
            "devol", "dinero", "broken", "kaputt", "rot", "damag",
        ],
        answer: [
            "you can send goods back within 30 days, and the money is with you five working days after they arrive",
            "Sie können Ware 30 Tage lang zurückgeben, und das Geld ist fünf Werktage nach Eingang bei Ihnen",
            "puede devolver los productos durante 30 días y recibe el dinero cinco días laborables después de su llegada",
        ],
    },
    Topic {
        id: "delivery",
        names: &[
            "deliver", "order", "ship", "package", "parcel", "late", "missing", "liefer",
            "bestell", "paket", "sendung", "pedido", "envio", "entrega", "paquete",
        ],
        answer: [
            "your latest order has left the warehouse and arrives tomorrow between 9 and 12",
            "Ihre letzte Bestellung hat das Lager verlassen und kommt morgen zwischen 9 und 12 Uhr an",
            "su último pedido ha salido del almacén y llega mañana entre las 9 y las 12",
        ],
    },
    Topic {
        id: "account",
        names: &[
            "account",
            "password",
            "login",
            "log",
            "sign",
            "email",
            "address",
            "konto",
            "passwort",
            "anmeld",
            "adresse",
            "cuenta",
            "contrasena",
            "sesion",
            "direccion",
        ],
        answer: [
            "you can change your password and your address under Profile, and a link to sign in again is sent by e-mail",
            "Passwort und Adresse ändern Sie unter Profil, und der Link zur neuen Anmeldung kommt per E-Mail",
            "puede cambiar la contraseña y la dirección en Perfil, y el enlace para entrar de nuevo llega por correo",
        ],
    },
    Topic {
        id: "general",
        names: &[""],
        answer: [
            "a colleague looks into it and writes to you within one working day",
            "eine Kollegin sieht es sich an und schreibt Ihnen innerhalb eines Werktags",
            "una compañera lo revisa y le escribe en el plazo de un día laborable",
        ],
    },
];

/// The answer, as a list of one.
pub(super) fn answer(principal: &str, query: &Query, tongue: Tongue) -> Vec<Value> {
    let fits = |topic: &&Topic| topic.names.iter().any(|name| query.begins(name));
    let topic = TOPICS.iter().find(fits);
    let items = topic.map(|topic| {
        let [en, de, es] = topic.answer;
        let ticket = format!("T-{:05}", number_of(principal) % 100_000);
        json!({"id": ticket, "topic": topic.id, "answer": tongue.pick(en, de, es), "ticket": ticket})
    });
    items.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_has_its_answer() {
        for (text, topic) in [
            ("where is my order?", "delivery"),
            ("Ich möchte eine Erstattung", "refund"),
            ("olvidé mi contraseña", "account"),
            ("I need a human", "general"),
            ("", "general"),
        ] {
            let items = answer("user-42", &Query::new(text.chars()), Tongue::De);
            assert_eq!(items[0]["topic"], topic, "{text}");
        }
    }
}
