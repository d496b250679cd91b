import attestationPolicy from './attestations/policy.get.ts'
import attestationsRunning from './attestations/running.get.ts'
import attestations from './attestations.get.ts'
import auditVerdicts from './audit/verdicts.get.ts'
import changes from './changes.get.ts'
import clusterEnvironment from './cluster/environment.get.ts'
import components from './components.get.ts'
import computeContention from './compute/contention.get.ts'
import computeFindings from './compute/findings.get.ts'
import computeHistory from './compute/history.get.ts'
import computeLatest from './compute/latest.get.ts'
import computeNodes from './compute/nodes.get.ts'
import computeWorkloads from './compute/workloads.get.ts'
import coverage from './coverage.get.ts'
import flowEdges from './flows/edges.get.ts'
import flowHints from './flows/hints.get.ts'
import flows from './flows.get.ts'
import health from './health.get.ts'
import imageTrust from './image-trust.get.ts'
import imageAttestation from './images/attestation.get.ts'
import imageAttestationPost from './images/attestation.post.ts'
import imageDiff from './images/diff.get.ts'
import imageByDigest from './images/digest.get.ts'
import imageRuntime from './images/runtime.get.ts'
import imageSbom from './images/sbom.get.ts'
import imageSbomPost from './images/sbom.post.ts'
import imageSbomCycloneDx from './images/sbom-cyclonedx.get.ts'
import imageVex from './images/vex.get.ts'
import imageVulnerabilities from './images/vulnerabilities.get.ts'
import imageVulnerabilitiesPost from './images/vulnerabilities.post.ts'
import images from './images.get.ts'
import index from './index.get.ts'
import metrics from './metrics.get.ts'
import namespacePolicies from './namespaces/networkpolicies.get.ts'
import policyTry from './networkpolicy/try.post.ts'
import nodeFacts from './node/facts.post.ts'
import nodeStatus from './node/status.get.ts'
import openApi from './openapi.get.ts'
import computeSamples from './pod/compute-batch.post.ts'
import computeMinutes from './pod/compute-history-batch.post.ts'
import podInfo from './pod/info.get.ts'
import podByAddress from './pod/ip.get.ts'
import podList from './pod/list.get.ts'
import podMarkDead from './pod/mark-dead.post.ts'
import podByName from './pod/name.get.ts'
import podNamespaces from './pod/namespaces.get.ts'
import podSpec from './pod/spec.post.ts'
import syscallsPost from './pod/syscalls.post.ts'
import syscallsByName from './pod/syscalls-by-name.get.ts'
import traffic from './pod/traffic.get.ts'
import trafficPost from './pod/traffic.post.ts'
import trafficBatch from './pod/traffic-batch.post.ts'
import trafficByName from './pod/traffic-by-name.get.ts'
import runtimeCapabilities from './runtime/capabilities.post.ts'
import runtimeCoverage from './runtime/coverage.post.ts'
import executables from './runtime/executables.post.ts'
import unshippedFiles from './runtime/unshipped.get.ts'
import search from './search.get.ts'
import seccompCrDelete from './seccomp/cr.delete.ts'
import seccompCrPut from './seccomp/cr.put.ts'
import denials from './seccomp/denials.get.ts'
import denialsPost from './seccomp/denials.post.ts'
import seccompNodeStatus from './seccomp/node-status.post.ts'
import seccompProfile from './seccomp/profile.get.ts'
import seccompExport from './seccomp/profile-export.get.ts'
import seccompExportPost from './seccomp/profile-export.post.ts'
import seccompProfileFile from './seccomp/profile-file.get.ts'
import seccompReset from './seccomp/profile-reset.post.ts'
import seccompProfiles from './seccomp/profiles.get.ts'
import serviceInfo from './svc/info.get.ts'
import serviceByAddress from './svc/ip.get.ts'
import serviceSpec from './svc/spec.post.ts'
import version from './version.get.ts'
import vex from './vex.post.ts'
import vulnerabilityDecisionPut from './vulnerabilities/decision.put.ts'
import vulnerabilityDecisions from './vulnerabilities/decisions.get.ts'
import vulnerabilityExposure from './vulnerabilities/exposure.get.ts'
import vulnerabilities from './vulnerabilities.get.ts'
import workloadCapabilities from './workloads/capabilities.get.ts'
import workloadContainers from './workloads/containers.get.ts'
import workloadDiff from './workloads/diff.get.ts'
import workloadExport from './workloads/export.get.ts'
import recordWorkloadExport from './workloads/export.post.ts'
import workloadPolicy from './workloads/networkpolicy.get.ts'
import workloadProfile from './workloads/profile.get.ts'
import workloadProfileDiff from './workloads/profile-diff.get.ts'
import workloadProfileVersion from './workloads/profile-version.get.ts'
import workloadProfileVersions from './workloads/profile-versions.get.ts'
import workloadRuntime from './workloads/runtime.get.ts'
import workloads from './workloads.get.ts'

/** The whole API. */
export const routes = [
  ...[index, health, metrics, version, openApi],
  ...[podSpec, podMarkDead, podInfo, podNamespaces, podByName, podByAddress, podList],
  ...[trafficPost, trafficBatch, traffic, trafficByName],
  ...[flows, flowEdges, flowHints],
  ...[workloadPolicy, namespacePolicies, policyTry],
  ...[syscallsPost, syscallsByName],
  ...[serviceSpec, serviceInfo, serviceByAddress],
  ...[auditVerdicts],
  ...[nodeFacts, nodeStatus, clusterEnvironment],
  ...[images, imageByDigest, workloadContainers],
  ...[imageVulnerabilitiesPost, imageVulnerabilities, imageSbomPost, imageSbom, imageSbomCycloneDx],
  ...[vulnerabilities, vulnerabilityExposure],
  ...[vulnerabilityDecisionPut, vulnerabilityDecisions, vex, imageVex],
  ...[search, components],
  ...[imageAttestationPost, imageAttestation, attestations, attestationsRunning],
  ...[attestationPolicy, imageTrust],
  ...[seccompExport, seccompExportPost],
  ...[seccompProfiles, seccompProfile, seccompProfileFile, seccompReset],
  ...[seccompCrPut, seccompCrDelete, seccompNodeStatus],
  ...[denialsPost, denials],
  ...[executables, runtimeCoverage, runtimeCapabilities],
  ...[workloadRuntime, imageRuntime, workloadCapabilities, unshippedFiles],
  ...[coverage],
  ...[computeSamples, computeLatest, computeNodes],
  ...[computeMinutes, computeHistory, computeContention],
  ...[computeFindings, computeWorkloads],
  ...[workloads, workloadProfile, workloadProfileVersions, workloadProfileVersion, workloadProfileDiff],
  ...[workloadExport, recordWorkloadExport],
  ...[imageDiff, workloadDiff, changes],
]
