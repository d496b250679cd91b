/** Findings of stored histories: the route against the reference evaluation. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Finding } from '../../lib/compute/findings/index.ts'
import { startApp } from '../support/app.ts'
import { storeCompute, timeAt } from '../support/compute.ts'
import { evaluate, type Scope } from './findings-reference.ts'
import { SETTINGS, worldBytes, worldOf } from './worlds.ts'

const WORLDS = 300
/** Worlds whose containers are in the same two namespaces, few enough that all of them are evaluated. */
const TOGETHER = 60
const app = await startApp()

test(`${WORLDS} stored worlds: the route finds what the reference finds`, async () => {
  const seeds = fc.sample(worldBytes, { numRuns: WORLDS, seed: 17 })
  const seen = new Set<string>()
  for (let from = 0; from < seeds.length; from += TOGETHER) {
    const worlds = seeds.slice(from, from + TOGETHER).map((bytes, i) => worldOf(bytes, `w${from + i}`, `g${from}`))
    const world = {
      histories: worlds.flatMap(({ histories }) => histories),
      nodes: new Map(worlds.flatMap(({ nodes }) => [...nodes])),
    }
    const now = await storeCompute(app.sql, world.histories, world.nodes)
    const node = [...worlds[0]!.nodes.keys()][0]!
    const [here, there] = worlds[0]!.namespaces as [string, string]
    for (const scope of [
      { namespace: here },
      { namespace: there },
      { node },
      { namespace: here, node },
    ] satisfies Scope[]) {
      const answer = await app.get(`/compute/findings?${new URLSearchParams(scope)}`)
      const { findings, ...rest } = answer.json as { findings: Finding[] }
      const expected = evaluate(
        world,
        scope,
        SETTINGS[0]!,
        (age) => `${timeAt(now, age)}Z`,
        (step) => seen.add(step),
      )
      assert.deepEqual(
        { ...rest, findings: findings.map(({ message: _, ...finding }) => finding) },
        { ...expected, history_disabled: false },
      )
    }
  }
  for (const step of [
    '4b',
    '4e',
    '4f',
    '4g: above',
    '4g: no request',
    '2a: light',
    '2a: none',
    'memory 2: culprit',
    'memory-limit-thrash',
  ])
    assert.ok(seen.has(step), `${step} never happened`)
})
