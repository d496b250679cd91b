/**
 * Two sets of names: the neutral ones, which are stored, and those of the products
 * (docs/contract.md#names-in-the-ecosystem).
 */

/** Senders of payloads, in the order of lists. */
export const SOURCES = ['db-matcher', 'operator-scanner', 'registry'] as const
export type Source = (typeof SOURCES)[number]

const PRODUCTS: Readonly<Record<string, string>> = { 'operator-scanner': 'trivy-operator', 'db-matcher': 'grype' }
const SOURCES_BY_NAME = new Map<string, Source>(
  SOURCES.flatMap((source) => [[source, source] as const, [PRODUCTS[source] ?? source, source]]),
)

/** All names of sources, neutral ones and product names. */
export const SOURCE_NAMES: readonly string[] = [...SOURCES_BY_NAME.keys()]

/** Set of names for answers and metrics; requests may use either. */
export const WIRE_NAMES = ['spec', 'kguardian'] as const
export type WireNames = (typeof WIRE_NAMES)[number]

/** The source with exactly this name, neutral or product; undefined for any other text. */
export const sourceNamed = (name: string): Source | undefined => SOURCES_BY_NAME.get(name)

/** Names of sources in answers by stored name, as JSON for `coalesce($1::text::jsonb ->> source, source)`. */
export const wireSourcesJson = (names: WireNames): string => JSON.stringify(names === 'spec' ? {} : PRODUCTS)

/** The name of a source in answers. */
export const toWireSource = (source: string, names: WireNames): string =>
  names === 'spec' ? source : (PRODUCTS[source] ?? source)

const LEGACY_FORMAT = 'signer-legacy'
const LEGACY_FORMAT_OF_PRODUCTS = 'cosign-legacy'

/** The stored name of a signature format; any other text is returned unchanged. */
export const storedFormat = (name: string): string => (name === LEGACY_FORMAT_OF_PRODUCTS ? LEGACY_FORMAT : name)

/**
 * Replaces the names of formats in stored signatures or attestations. Quotes inside JSON strings are escaped, so only
 * whole values match.
 */
export const toWireFormats = (json: string, names: WireNames): string =>
  names === 'spec' ? json : json.replaceAll(`"format":"${LEGACY_FORMAT}"`, `"format":"${LEGACY_FORMAT_OF_PRODUCTS}"`)

/** The prefix of metrics that have an ecosystem name. */
export const metricPrefix = (names: WireNames): string => (names === 'spec' ? 'svc_' : 'kguardian_')

/** The word for the product in the names and annotations of exported objects. */
export const productWord = (names: WireNames): string => (names === 'spec' ? 'telemetry' : 'kguardian')

/** Targets of generated policies: two admission engines and the ecosystem's own evaluator. */
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

/** All names of policy formats, neutral ones and product names. */
export const POLICY_FORMAT_NAMES: readonly string[] = [...POLICY_FORMATS_BY_NAME.keys()]

/** The policy format with exactly this name, neutral or product; undefined for any other text. */
export const policyFormatNamed = (name: string): PolicyFormat | undefined => POLICY_FORMATS_BY_NAME.get(name)

/** The name of a policy format in answers. */
export const toWirePolicyFormat = (format: PolicyFormat, names: WireNames): string =>
  names === 'spec' ? format : PRODUCTS_OF_FORMATS[format]
