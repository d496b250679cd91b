/** Payloads as scanners post them. */
import { digestOf } from '../support/images.ts'

type Fields = Record<string, unknown>

let made = 0

/** A digest that no other test posts. */
export const newImage = () => digestOf(`payload-${made++}`)
export const newCve = () => `CVE-2026-${10_000 + made++}`

export const SCANNED_AT = '2026-01-01T00:00:00Z'
/** This many seconds later. */
export const scannedAt = (seconds: number) => new Date(Date.parse(SCANNED_AT) + seconds * 1_000).toISOString()

export const finding = (fields: Fields = {}): Fields => ({
  id: 'CVE-2026-1',
  package: { name: 'openssl', version: '3.0.1' },
  severity: 'HIGH',
  ...fields,
})

export const component = (fields: Fields = {}): Fields => ({ name: 'openssl', version: '3.0.1', ...fields })

const payload = (image: string | Fields, fields: Fields): Fields => ({
  schema_version: 1,
  image: typeof image === 'string' ? { digest: image } : image,
  source: 'operator-scanner',
  scanned_at: SCANNED_AT,
  ...fields,
})

export const findingsOf = (
  image: string | Fields,
  vulnerabilities: unknown = [finding()],
  fields: Fields = {},
): Fields => payload(image, { vulnerabilities, ...fields })

export const sbomOf = (image: string | Fields, components: unknown = [component()], fields: Fields = {}): Fields =>
  payload(image, { components, ...fields })

/** The page of a set. */
export const pageOf = (
  image: string,
  set_id: string,
  index: number,
  total: number,
  components: unknown,
  fields: Fields = {},
): Fields => sbomOf(image, components, { page: { set_id, index, total }, ...fields })
