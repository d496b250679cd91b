import assert from 'node:assert/strict'
import test from 'node:test'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { startScene } from './scene.ts'

test('smoke', async () => {
  const s = await startScene(supplyChainRefresh)
  console.log(await s.run(), await s.count())
})
