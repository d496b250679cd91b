// Answers by cyclonus whether network policies allow a connection: reads a JSON object of `question` from each line of
// the standard input and writes one of `answer`. test/policies/agreement.test.ts compares them with the broker's.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

type question struct {
	Policies []*networking.NetworkPolicy `json:"policies"`
	From     end                         `json:"from"`
	To       end                         `json:"to"`
	Port     int                         `json:"port"`
	// The name that the server's pod gives the port, else empty. Cyclonus knows one for each port.
	PortName string        `json:"portName"`
	Protocol core.Protocol `json:"protocol"`
}

type end struct {
	// Cyclonus knows one address of each pod.
	IP string `json:"ip"`
	// Null outside of the cluster.
	Pod *struct {
		Namespace       string            `json:"namespace"`
		NamespaceLabels map[string]string `json:"namespaceLabels"`
		Labels          map[string]string `json:"labels"`
	} `json:"pod"`
}

type answer struct {
	Ingress bool `json:"ingress"`
	Egress  bool `json:"egress"`
	Allowed bool `json:"allowed"`
	// Whether any policy isolates the end in this direction.
	IngressIsolated bool `json:"ingressIsolated"`
	EgressIsolated  bool `json:"egressIsolated"`
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	in.DisallowUnknownFields()
	out := json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(judge(asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func judge(asked question) answer {
	for _, policy := range asked.Policies {
		setDefaults(policy)
	}
	result := matcher.BuildNetworkPolicies(false, asked.Policies).IsTrafficAllowed(&matcher.Traffic{
		Source:           peerOf(asked.From),
		Destination:      peerOf(asked.To),
		ResolvedPort:     asked.Port,
		ResolvedPortName: asked.PortName,
		Protocol:         asked.Protocol,
	})
	return answer{
		Ingress:         result.Ingress.IsAllowed(),
		Egress:          result.Egress.IsAllowed(),
		Allowed:         result.IsAllowed(),
		IngressIsolated: isIsolated(result.Ingress),
		EgressIsolated:  isIsolated(result.Egress),
	}
}

// Cyclonus reads policies as they are stored, so this sets what the API server does: SetDefaults_NetworkPolicy in
// k8s.io/kubernetes/pkg/apis/networking/v1.
func setDefaults(policy *networking.NetworkPolicy) {
	if len(policy.Spec.PolicyTypes) > 0 {
		return
	}
	policy.Spec.PolicyTypes = []networking.PolicyType{networking.PolicyTypeIngress}
	if len(policy.Spec.Egress) > 0 {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networking.PolicyTypeEgress)
	}
}

func peerOf(one end) *matcher.TrafficPeer {
	peer := &matcher.TrafficPeer{IP: one.IP}
	if one.Pod != nil {
		peer.Internal = &matcher.InternalPeer{
			PodLabels:       one.Pod.Labels,
			NamespaceLabels: one.Pod.NamespaceLabels,
			Namespace:       one.Pod.Namespace,
		}
	}
	return peer
}

func isIsolated(result *matcher.DirectionResult) bool {
	return len(result.AllowingTargets)+len(result.DenyingTargets) > 0
}
