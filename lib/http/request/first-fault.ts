/**
 * Arrays and records that are validated up to the first bad member. Those of zod validate every member and keep each
 * issue: 2 MiB of `[0,0,...]` would take seconds and hundreds of megabytes, for the one line that is answered.
 */
import { z } from 'zod'
import { Slice } from '../../event-loop/slices.ts'

interface ListDef extends z.core.$ZodArrayDef {
  readonly maxItems: number
}

type Parse = z.core.$ZodType['_zod']['parse']
type Payload = Parameters<Parse>[0]
type Context = Parameters<Parse>[1]

const FirstFaultArray = z.core.$constructor<z.ZodArray, ListDef>('FirstFaultArray', (inst, def) => {
  z.ZodArray.init(inst, def)
  const { element, maxItems } = def
  // For the JSON schema.
  inst._zod.bag.maximum = maxItems

  const validate = (payload: Payload, i: number, sent: readonly unknown[], ctx: Context): boolean => {
    const { value, issues } = element._zod.run({ value: sent[i], issues: [] }, ctx) as Payload
    if (issues.length > 0) payload.issues.push(...z.core.util.prefixIssues(i, issues))
    else (payload.value as unknown[])[i] = value
    return issues.length === 0
  }

  inst._zod.parse = (payload, ctx) => {
    const sent: unknown = payload.value
    if (!Array.isArray(sent)) {
      payload.issues.push({ code: 'invalid_type', expected: 'array', input: sent, inst })
      return payload
    }
    if (sent.length > maxItems) {
      payload.issues.push({ code: 'too_big', origin: 'array', maximum: maxItems, inclusive: true, input: sent, inst })
      return payload
    }
    payload.value = Array(sent.length)
    // Elements are never asynchronous, and zod is much faster when it knows.
    const now = { ...ctx, async: false }
    if (!ctx.async) {
      for (let i = 0; i < sent.length; i++) if (!validate(payload, i, sent, now)) break
      return payload
    }
    return inSlices(sent.length, (i) => validate(payload, i, sent, now)).then(() => payload)
  }
})

/** Ends with the first step that returns false. */
async function inSlices(steps: number, step: (i: number) => boolean): Promise<void> {
  const slice = new Slice()
  for (let i = 0; i < steps && step(i); i++) if (slice.isOver) await slice.next()
}

/**
 * An array of at most `maxItems`, validated up to the first bad element; in slices where it is validated by
 * `safeParseAsync` and is not part of another array. The schema of the elements must be synchronous.
 */
export function listOf<E extends z.ZodType>(element: E, maxItems: number): z.ZodArray<E> {
  return new FirstFaultArray({ type: 'array', element, maxItems }) as z.ZodArray<E>
}

/** The `maxItems` of a `listOf`; null for any other schema. */
export function maxItemsOf(schema: z.ZodType): number | null {
  return schema instanceof FirstFaultArray ? (schema._zod.def as ListDef).maxItems : null
}

const FirstFaultRecord = z.core.$constructor<z.ZodRecord, z.core.$ZodRecordDef>('FirstFaultRecord', (inst, def) => {
  z.ZodRecord.init(inst, def)
  inst._zod.parse = (payload, ctx) => {
    const sent: unknown = payload.value
    if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) {
      payload.issues.push({ code: 'invalid_type', expected: 'record', input: sent, inst })
      return payload
    }
    const kept: Record<string, unknown> = {}
    payload.value = kept
    for (const key of Object.keys(sent)) {
      // An assignment would change the prototype.
      if (key === '__proto__') continue
      const { value, issues } = def.valueType._zod.run(
        { value: (sent as Record<string, unknown>)[key], issues: [] },
        ctx,
      ) as Payload
      if (issues.length > 0) {
        payload.issues.push(...z.core.util.prefixIssues(key, issues))
        return payload
      }
      kept[key] = value
    }
    return payload
  }
})

/** An object with any keys, validated up to the first bad value. The schema of the values must be synchronous. */
export function recordOf<V extends z.ZodType>(value: V): z.ZodRecord<z.ZodString, V> {
  return new FirstFaultRecord({ type: 'record', keyType: z.string(), valueType: value }) as unknown as z.ZodRecord<
    z.ZodString,
    V
  >
}
