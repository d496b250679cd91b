/** The two columns of names that the ecosystem has (interop-supply-chain S0): ours, in which all is stored, and those of its products. */

/** Whoever sends payloads; in the order in which lists name them. */
export const SOURCES = ['db-matcher', 'operator-scanner', 'registry'] as const
export type Source = (typeof SOURCES)[number]

const PRODUCTS: Readonly<Record<string, string>> = { 'operator-scanner': 'trivy-operator', 'db-matcher': 'grype' }
const SOURCES_BY_NAME = new Map<string, Source>(
  SOURCES.flatMap((source) => [[source, source] as const, [PRODUCTS[source] ?? source, source]]),
)

/** Every name that a source has, in either column. */
export const SOURCE_NAMES: readonly string[] = [...SOURCES_BY_NAME.keys()]

/** Which column answers and metrics are written in; either is read. */
export const WIRE_NAMES = ['spec', 'kguardian'] as const
export type WireNames = (typeof WIRE_NAMES)[number]

/** The source that a name of either column means, exactly; undefined for any other text. */
export const sourceNamed = (name: string): Source | undefined => SOURCES_BY_NAME.get(name)

/** What answers write for stored names, as JSON for SQL: `coalesce($1::text::jsonb ->> source, source)`; of what is not in it the name stays. */
export const shownSources = (names: WireNames): string => JSON.stringify(names === 'spec' ? {} : PRODUCTS)

/** A source as answers write it. */
export const shownSource = (source: string, names: WireNames): string =>
  names === 'spec' ? source : (PRODUCTS[source] ?? source)

const LEGACY_FORMAT = 'signer-legacy'
const LEGACY_FORMAT_OF_PRODUCTS = 'cosign-legacy'

/** The format of a signature as it is stored, of a name in either column; any other text stays. */
export const formatNamed = (name: string): string => (name === LEGACY_FORMAT_OF_PRODUCTS ? LEGACY_FORMAT : name)

/** Stored signatures or attestations as answers write them. Within a string of JSON quotes are escaped, so that only keys and values are found. */
export const shownFormats = (json: string, names: WireNames): string =>
  names === 'spec' ? json : json.replaceAll(`"format":"${LEGACY_FORMAT}"`, `"format":"${LEGACY_FORMAT_OF_PRODUCTS}"`)

/** What begins the names of the counters that the specification names with `svc_`. */
export const metricPrefix = (names: WireNames): string => (names === 'spec' ? 'svc_' : 'kguardian_')

/** What policies are generated for: two admission engines, and the evaluator of the ecosystem itself. */
export const POLICY_FORMATS = ['policy-engine-a', 'policy-engine-b', 'native'] as const
export type PolicyFormat = (typeof POLICY_FORMATS)[number]

const PRODUCTS_OF_FORMATS: Readonly<Record<PolicyFormat, string>> = {
  'policy-engine-a': 'kyverno',
  'policy-engine-b': 'policy-controller',
  native: 'kguardian',
}
const POLICY_FORMATS_BY_NAME = new Map<string, PolicyFormat>(
  POLICY_FORMATS.flatMap((format) => [[format, format] as const, [PRODUCTS_OF_FORMATS[format], format]]),
)

/** Every name that a format of policies has, in either column. */
export const POLICY_FORMAT_NAMES: readonly string[] = [...POLICY_FORMATS_BY_NAME.keys()]

/** The format of policies that a name of either column means, exactly; undefined for any other text. */
export const policyFormatNamed = (name: string): PolicyFormat | undefined => POLICY_FORMATS_BY_NAME.get(name)

/** A format of policies as answers write it. */
export const shownPolicyFormat = (format: PolicyFormat, names: WireNames): string =>
  names === 'spec' ? format : PRODUCTS_OF_FORMATS[format]
