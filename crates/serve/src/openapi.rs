//! The API's description for programs. `openapi.json` is made of the types that are sent and of what
//! stands at each handler, and is committed so that a change of the API is seen as one.

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, KnownFormat, ObjectBuilder, OpenApi, OpenApiBuilder, RefOr,
    Schema, SchemaFormat, Type,
};
use utoipa::{PartialSchema, ToSchema};

use crate::error::Refused;

const ABOUT: &str = "Pictures that are alike, from an index or a run. Where the server was started \
                     with a token, send it as `Authorization: Bearer WORD`; without it everything \
                     is answered 401. What a page of another site asks for is answered 403. With \
                     503 comes Retry-After.";

/// What holds for every question.
pub(crate) fn about() -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = ComponentsBuilder::new()
        .security_scheme("token", SecurityScheme::Http(bearer))
        .response_from::<Refused>();
    let info = InfoBuilder::new().title("Anchorhood").version("1").description(Some(ABOUT));
    let token = SecurityRequirement::new::<_, _, String>("token", []);
    OpenApiBuilder::new()
        .info(info)
        .security(Some([SecurityRequirement::default(), token]))
        .components(Some(components.build()))
        .build()
}

/// The bytes of a file.
pub(crate) enum Binary {}

impl PartialSchema for Binary {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Binary {}

/// This document.
#[utoipa::path(get, path = "/api/openapi.json", responses(
    (status = 200, description = "OpenAPI 3.1.", body = Object),
))]
pub(crate) async fn document() -> impl IntoResponse {
    let told = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (told, include_str!("openapi.json"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::server::described;

    /// `ANCHORHOOD_WRITE_OPENAPI=1 cargo test -p anchorhood-serve openapi` writes it.
    #[test]
    fn the_committed_document_is_what_the_types_say() {
        let described = described().into_openapi().to_pretty_json().unwrap() + "\n";
        let place = concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi.json");
        if std::env::var_os("ANCHORHOOD_WRITE_OPENAPI").is_some() {
            std::fs::write(place, &described).unwrap();
        }
        assert!(std::fs::read_to_string(place).unwrap() == described, "{place} is stale");
    }

    /// What the attributes say in numbers is what the constants say.
    #[test]
    fn greatest_numbers_are_told() {
        let document: Value = serde_json::from_str(include_str!("openapi.json")).unwrap();
        for (path, name, most) in [
            ("/api/pictures", "count", crate::asked::MOST_LISTED),
            ("/api/search", "k", crate::api::MOST_NEIGHBOURS),
        ] {
            let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
            let told = parameters.iter().find(|p| p["name"] == name).unwrap();
            assert_eq!(told["schema"]["maximum"], most, "{path}");
        }
    }
}
