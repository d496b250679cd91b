/** Names of containers in texts for people. */
import { quoted } from '../../text/yaml.ts'

const MAX_NAMED = 10

/** The first names, and how many more there are. Those that could be misread are quoted. */
export const listed = (names: readonly string[]): string => firstOf(names.slice(0, MAX_NAMED).map(quoted), names.length)

/** The first of these texts, and how many more there are. */
export const firstOf = (texts: readonly string[], count = texts.length): string =>
  `${texts.slice(0, MAX_NAMED).join(', ')}${count > MAX_NAMED ? `, +${count - MAX_NAMED} more` : ''}`
