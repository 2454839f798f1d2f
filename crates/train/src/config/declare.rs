//! From the declaration of all settings (`settings.rs`) to everything that is made of it: the typed
//! tables with their TOML, [`RunConfig`](super::RunConfig), the presets and
//! [`SETTINGS`](super::SETTINGS).
//!
//! ```text
//! /// What it does: documentation and help.
//! name: Type = paper's value, quick value, shapes value; [ranges], flag, absent value; unwritten;
//! ```
//!
//! `quick` and `shapes` are the quick preset's value where it is another, and its value for
//! `shapes`. `flag` is missing where a setting has none. A setting that a file may leave out has
//! `absent`, or `unwritten` if it is left out while it has the paper's value: files then look as
//! they did before there was such a setting.

/// The fields of a table, or of the top of the file.
macro_rules! settings {
    (
        $(#[doc = $about_run:literal])+
        $run:ident, $run_heading:literal {
            $(
                $(#[doc = $top_help:literal])+
                $top:ident: $top_type:ty = $top_paper:expr; $top_ranges:expr, flag $top_flag:expr;
            )+
        }
        $(
            $(#[doc = $about:literal])+
            $section:ident: $table:ident, $heading:literal {
                $(
                    $(#[doc = $help:literal])+
                    $field:ident: $type:ty =
                        $paper:expr $(, quick $quick:expr)? $(, shapes $shapes:expr)?;
                        $ranges:expr $(, flag $flag:expr)? $(, absent $absent:expr)?;
                        $($unwritten:ident;)?
                )+
            }
        )+
    ) => {
        $(#[doc = $about_run])+
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct $run {
            $($(#[doc = $top_help])+ pub $top: $top_type,)+
            $($(#[doc = $about])+ pub $section: $table,)+
        }

        impl $run {
            /// As a preset has it.
            pub(super) fn started(start: Start) -> Self {
                $run {
                    $($top: $top_paper,)+
                    $($section: $table::started(start),)+
                }
            }
        }

        impl<'de> Deserialize<'de> for $run {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Given {
                    $($top: Option<Read<$top_type>>,)+
                    $($section: Option<$table>,)+
                }
                let given = Given::deserialize(from)?;
                Ok($run {
                    $($top: given.$top.map(|v| v.0)
                        .ok_or_else(|| missing::<D>(stringify!($top)))?,)+
                    $($section: given.$section.or_else($table::absent)
                        .ok_or_else(|| missing::<D>(stringify!($section)))?,)+
                })
            }
        }

        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $table {
                $($(#[doc = $help])+ pub $field: $type,)+
            }

            impl $table {
                fn started(start: Start) -> Self {
                    $table {
                        $($field: start.value(
                            $paper,
                            first!($(Some($quick),)? None),
                            first!($(Some($shapes),)? None),
                        ),)+
                    }
                }

                /// What a file without this table means, if all of it may be left out.
                fn absent() -> Option<Self> {
                    Some($table {
                        $($field: absent!($type $(, $absent)? $(, $unwritten $paper)?)?,)+
                    })
                }
            }

            impl Serialize for $table {
                fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                    let mut table = to.serialize_map(None)?;
                    $(
                        let unwritten: Option<$type> = absent!($type $(, $unwritten $paper)?);
                        if unwritten.as_ref() != Some(&self.$field) {
                            table.serialize_entry(stringify!($field), &Write(&self.$field))?;
                        }
                    )+
                    table.end()
                }
            }

            impl<'de> Deserialize<'de> for $table {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    #[derive(Deserialize)]
                    #[serde(deny_unknown_fields)]
                    struct Given {
                        $($field: Option<Read<$type>>,)+
                    }
                    let given = Given::deserialize(from)?;
                    Ok($table {
                        $($field: match given.$field {
                            Some(value) => value.0,
                            None => absent!($type $(, $absent)? $(, $unwritten $paper)?)
                                .ok_or_else(|| missing::<D>(stringify!($field)))?,
                        },)+
                    })
                }
            }
        )+

        /// Every setting of a run, as config.toml has them in order.
        pub static SETTINGS: &[Setting] = &[
            $(setting!(
                [$top]: $top_type, stringify!($top), concat!($($top_help),+), $run_heading,
                $top_ranges, $top_flag
            ),)+
            $($(setting!(
                [$section $field]: $type, concat!(stringify!($section), ".", stringify!($field)),
                concat!($($help),+), $heading, $ranges $(, $flag)?
            ),)+)+
        ];
    };
}

/// What a file means that leaves a setting out: the given value, or what its kind says.
macro_rules! absent {
    ($type:ty) => {
        <$type as Value>::absent()
    };
    ($type:ty, unwritten $value:expr) => {
        Some::<$type>($value)
    };
    ($type:ty, $value:expr) => {
        Some::<$type>($value)
    };
}

/// An entry of the list.
macro_rules! setting {
    (
        [$($place:ident)+]: $type:ty, $name:expr, $help:expr, $heading:expr,
        $ranges:expr $(, $flag:expr)?
    ) => {
        Setting {
            name: $name,
            help: $help.trim_ascii(),
            heading: $heading,
            flag: first!($(Some($flag),)? None),
            kind: <$type as Value>::KIND,
            ranges: &$ranges,
            text: |config| config$(.$place)+.text(),
            parse: |config, text| {
                config$(.$place)+ = Value::parse(text)?;
                Ok(())
            },
            understands: |text| <$type as Value>::parse(text).map(|_| ()),
            numbers: |config| config$(.$place)+.numbers(),
        }
    };
}

macro_rules! first {
    ($first:expr $(, $other:expr)*) => {
        $first
    };
}

pub(super) use {absent, first, setting, settings};
