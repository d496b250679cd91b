/** Loaded only when it is asked for: most of the program's start would be spent on it. */
import { dump } from 'js-yaml'

export const yamlOf = (answer: unknown): string => dump(answer, { lineWidth: -1, noRefs: true })
