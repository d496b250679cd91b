/** VEX documents, for tests. */
type Fields = Record<string, unknown>

let made = 0

export const statement = (name: string, products: readonly string[], fields: Fields = {}): Fields => ({
  vulnerability: { name },
  products: products.map((id) => ({ '@id': id })),
  status: 'not_affected',
  justification: 'component_not_present',
  ...fields,
})

/** A document that no other test has. */
export const openVex = (statements: readonly Fields[], fields: Fields = {}) => ({
  '@context': 'https://openvex.dev/ns/v0.2.0',
  '@id': `https://vex.example.org/${++made}`,
  author: 'vendor@example.org',
  timestamp: '2026-01-01T00:00:00Z',
  version: 1,
  statements,
  ...fields,
})

/** A document that no other test has. */
export const cycloneDx = (vulnerabilities: readonly Fields[], fields: Fields = {}) => ({
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  serialNumber: `urn:uuid:00000000-0000-4000-8000-${String(++made).padStart(12, '0')}`,
  version: 1,
  vulnerabilities,
  ...fields,
})
