/** Schemas of the policies of each engine, from the fields that the engine publishes. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Json } from './policies.ts'

const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allErrors: true })
const compiled = (name: string) =>
  ajv.compile(JSON.parse(readFileSync(new URL(`../fixtures/admission/${name}.json`, import.meta.url), 'utf8')))

const validators: Record<string, ReturnType<typeof compiled>> = {
  ImageValidatingPolicy: compiled('kyverno-image-validating-policy.v1beta1'),
  ClusterImagePolicy: compiled('policy-controller-cluster-image-policy.v1beta1'),
  ImageTrustPolicy: compiled('kguardian-image-trust-policy.v1alpha1'),
}

/** Fails for an object that its engine would refuse, or from which it would drop a field. */
export function assertTaken(policy: Json): void {
  const validate =
    validators[policy.kind] ?? (policy.kind === 'ClusterImageTrustPolicy' ? validators.ImageTrustPolicy : undefined)
  assert.ok(validate, `no engine knows ${policy.kind}`)
  assert.ok(validate(policy), JSON.stringify(validate.errors, null, 1))
}
