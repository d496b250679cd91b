import assert from 'node:assert/strict'
import { test } from 'node:test'
import { misreadsEscapedKeys } from '../../lib/process/escaped-keys.ts'

/** Found in the `managedFields` of any pod with a container of this name. */
const OF_A_POD = '{".":{},"k:{\\"name\\":\\"app\\"}":{}}'
/** A key that equals the text found there, of the same length. */
const MADE_FOR_IT = JSON.stringify({ '.': {}, 'k:{\\"name\\":\\"ap': {} })

test('misread keys are detected by a probe, whatever was parsed before', () => {
  const isMisread = misreadsEscapedKeys()
  JSON.parse(MADE_FOR_IT)
  assert.equal(Object.keys(JSON.parse(OF_A_POD))[1] !== 'k:{"name":"app"}', isMisread)
  assert.equal(misreadsEscapedKeys(), isMisread)
  if (/^2[02]\./.test(process.versions.node)) assert.equal(isMisread, false)
})
