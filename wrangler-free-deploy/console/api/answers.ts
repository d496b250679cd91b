/** Answers of the API by their path. Modules that run outside of a browser use it as well. */
import type { paths } from './schema.d.ts'

type JsonPath = {
  [P in keyof paths]: paths[P] extends {
    get: { responses: { 200: { content: { 'application/json': unknown } } } }
  }
    ? P
    : never
}[keyof paths]

export type JsonAnswer<P extends JsonPath> = paths[P] extends {
  get: { responses: { 200: { content: { 'application/json': infer T } } } }
}
  ? T
  : never
