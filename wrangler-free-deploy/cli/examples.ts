/** Calls for the manual, kept beside the commands that they show. */

export interface Example {
  /** After `ctb`. */
  readonly words: string
  /** What it is for; if its exit code is not 0, `exit code N`. */
  readonly what: string
}

const EXAMPLES = new WeakMap<object, readonly Example[]>()

export function withExamples<Command extends object>(command: Command, examples: readonly Example[]): Command {
  EXAMPLES.set(command, examples)
  return command
}

export const examplesOf = (command: object): readonly Example[] => EXAMPLES.get(command) ?? []
