package charttest

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const chartFolder = "../chart"

// least are the values that have no default.
const least = `
existingSecret: purser
baseURL: https://billing.example.com
`

// most turns everything on.
const most = least + `
replicas: 3
env: {PURSER_TRUSTED_PROXY: 10.0.0.0/8, PURSER_DB_CONNS: 30, OTEL_TRACES_SAMPLER_ARG: 0.01, SSL_CERT_FILE: /etc/purser/ca/ca.crt, NO_PROXY: 10.0.0.0/8}
secretEnv: [PURSER_SECRET_KEY_PREVIOUS, PURSER_SMTP_URL, OTEL_EXPORTER_OTLP_HEADERS, HTTPS_PROXY]
extraVolumes: [{name: ca, configMap: {name: private-ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/purser/ca, readOnly: true}]
imagePullSecrets: [{name: registry}]
ingress: {enabled: true, className: nginx, host: billing.example.com, tlsSecret: billing-tls, annotations: {a: b}}
metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}}}
networkPolicy:
  enabled: true
  ingressFrom: [{namespaceSelector: {matchLabels: {name: ingress}}}]
  metricsFrom: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
  databaseTo: [{ipBlock: {cidr: 10.1.0.0/16}}]
  extraEgress: [{ports: [{port: 587}]}]
podAnnotations: {a: b}
podLabels: {team: billing}
nodeSelector: {disk: fast}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
`

// render renders the chart as helm install does.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "billing", Namespace: "default", IsInstall: true, Revision: 1}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// kinds makes an empty object of each kind that the chart may have.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return &apps.Deployment{} },
	"batch/v1 Job":                            func() any { return &batch.Job{} },
	"v1 Service":                              func() any { return &core.Service{} },
	"networking.k8s.io/v1 Ingress":            func() any { return &networking.Ingress{} },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
}

// objects decodes what was rendered, by kind and name. An unknown field fails.
func objects(t *testing.T, values string) map[string]any {
	t.Helper()
	rendered, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(file, "NOTES.txt") {
			continue
		}
		for _, document := range strings.Split(rendered[file], "\n---\n") {
			var head struct {
				APIVersion string          `json:"apiVersion"`
				Kind       string          `json:"kind"`
				Metadata   meta.ObjectMeta `json:"metadata"`
			}
			if strings.TrimSpace(document) == "" {
				continue
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, document)
			}
			make, known := kinds[head.APIVersion+" "+head.Kind]
			if !known {
				t.Fatalf("%s has a %s of %s, which no type is known for", file, head.Kind, head.APIVersion)
			}
			object := make()
			if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
				t.Errorf("%s: %v\n%s", file, err, document)
			}
			name := head.Kind + " " + head.Metadata.Name
			if found[name] != nil {
				t.Errorf("two objects are %s", name)
			}
			found[name] = object
		}
	}
	return found
}

func TestTheChartRendersObjectsOfKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values string
		want   []string
	}{
		{least, []string{"Deployment billing-purser", "Job billing-purser-migrate", "PodDisruptionBudget billing-purser", "Service billing-purser", "Service billing-purser-metrics"}},
		{most, []string{
			"Deployment billing-purser", "Ingress billing-purser", "Job billing-purser-migrate", "NetworkPolicy billing-purser",
			"PodDisruptionBudget billing-purser", "Service billing-purser", "Service billing-purser-metrics", "ServiceMonitor billing-purser",
		}},
		{least + "replicas: 1\nmetrics: {enabled: false}\nmigrate: {enabled: false}", []string{"Deployment billing-purser", "Service billing-purser"}},
	} {
		if got := slices.Sorted(maps.Keys(objects(t, c.values))); !slices.Equal(got, c.want) {
			t.Errorf("with %s: %v", c.values, got)
		}
	}
}

func TestPodsAreConfined(t *testing.T) {
	t.Parallel()
	all := objects(t, most)
	for name, pod := range map[string]core.PodSpec{
		"server":  all["Deployment billing-purser"].(*apps.Deployment).Spec.Template.Spec,
		"migrate": all["Job billing-purser-migrate"].(*batch.Job).Spec.Template.Spec,
	} {
		user := pod.SecurityContext
		if user == nil || user.RunAsNonRoot == nil || !*user.RunAsNonRoot || user.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
			pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod is not confined: %+v", name, user)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: the container is not confined: %+v", name, s)
			}
		}
	}
}

// A Service finds the pods, metrics are on a Service of their own, and the budget and the
// policy are about the same pods.
func TestSelectorsFindTheirPods(t *testing.T) {
	t.Parallel()
	all := objects(t, most)
	deployment := all["Deployment billing-purser"].(*apps.Deployment)
	labels := deployment.Spec.Template.Labels
	migrate := all["Job billing-purser-migrate"].(*batch.Job).Spec.Template.Labels
	api, metrics := all["Service billing-purser"].(*core.Service), all["Service billing-purser-metrics"].(*core.Service)
	for name, selector := range map[string]map[string]string{
		"Deployment": deployment.Spec.Selector.MatchLabels, "Service": api.Spec.Selector, "metrics": metrics.Spec.Selector,
		"PodDisruptionBudget": all["PodDisruptionBudget billing-purser"].(*policy.PodDisruptionBudget).Spec.Selector.MatchLabels,
	} {
		if !selects(selector, labels) || selects(selector, migrate) {
			t.Errorf("%s selects %v", name, selector)
		}
	}
	walls := all["NetworkPolicy billing-purser"].(*networking.NetworkPolicy).Spec.PodSelector.MatchLabels
	if !selects(walls, labels) || !selects(walls, migrate) {
		t.Errorf("the policy selects %v", walls)
	}
	egress := all["NetworkPolicy billing-purser"].(*networking.NetworkPolicy).Spec.Egress
	if last := egress[len(egress)-1]; len(last.Ports) != 1 || last.Ports[0].Port.IntValue() != 587 {
		t.Errorf("the last rule of the policy is %+v", last)
	}
	monitor := all["ServiceMonitor billing-purser"].(*monitoring.ServiceMonitor).Spec
	if !selects(monitor.Selector.MatchLabels, metrics.Labels) || selects(monitor.Selector.MatchLabels, api.Labels) {
		t.Errorf("the monitor selects %v", monitor.Selector.MatchLabels)
	}
	// The rules and the dashboard ask for one job, which is the value of this label.
	rules, err := os.ReadFile("../prometheus/purser.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	job := regexp.MustCompile(`up\{job="(\w+)"\}`).FindSubmatch(rules)
	if job == nil || monitor.JobLabel == "" || metrics.Labels[monitor.JobLabel] != string(job[1]) {
		t.Errorf("the label %q of the Service is %q, and the rules ask for %q", monitor.JobLabel, metrics.Labels[monitor.JobLabel], job)
	}
	ports := map[string]bool{}
	for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports[port.Name] = true
	}
	for _, service := range []*core.Service{api, metrics} {
		if len(service.Spec.Ports) != 1 || !ports[service.Spec.Ports[0].TargetPort.String()] {
			t.Errorf("%s leads to %+v", service.Name, service.Spec.Ports)
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"no secret":                 "baseURL: https://billing.example.com",
		"no public address":         "existingSecret: purser",
		"an address that is none":   "existingSecret: purser\nbaseURL: billing.example.com",
		"a setting of another":      least + "env: {DATABASE_URL: x}",
		"a variable of the linker":  least + "env: {LD_PRELOAD: x}",
		"a secret of another":       least + "secretEnv: [DATABASE_URL_OWNER]",
		"a secret with its value":   least + "secretEnv: [{PURSER_SMTP_URL: x}]",
		"no server":                 least + "replicas: 0",
		"a drain without a unit":    least + "drain: 5",
		"an ingress without a host": least + "ingress: {enabled: true}",
	} {
		if _, err := render(t, values); err == nil {
			t.Errorf("%s was rendered", name)
		}
	}
}

// The container has the time that a server needs to stop, and only settings that exist.
func TestTheServerIsConfigured(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	pod := objects(t, most)["Deployment billing-purser"].(*apps.Deployment).Spec.Template.Spec
	if *pod.TerminationGracePeriodSeconds != 85 {
		t.Errorf("the grace period is %d seconds for a drain of 10", *pod.TerminationGracePeriodSeconds)
	}
	setting := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
	known := map[string]bool{}
	for _, match := range setting.FindAllStringSubmatch(string(guide), -1) {
		known[match[1]] = true
	}
	seen := map[string]bool{}
	for _, variable := range pod.Containers[0].Env {
		standard := strings.HasPrefix(variable.Name, "OTEL_") || slices.Contains([]string{"SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY"}, variable.Name)
		if !known[variable.Name] && !standard || seen[variable.Name] {
			t.Errorf("%s is unknown or set twice", variable.Name)
		}
		seen[variable.Name] = true
	}
	for _, name := range []string{"DATABASE_URL", "PURSER_SECRET_KEY", "PURSER_BASE_URL", "PURSER_METRICS_ADDR", "PURSER_TRUSTED_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if !seen[name] {
			t.Errorf("%s is not set", name)
		}
	}
}

// Secrets come from the Secret by name, and both pods have the certificates for the database.
func TestSecretsAndCertificatesReachThePods(t *testing.T) {
	t.Parallel()
	all := objects(t, most)
	server := all["Deployment billing-purser"].(*apps.Deployment).Spec.Template.Spec
	migrate := all["Job billing-purser-migrate"].(*batch.Job).Spec.Template.Spec
	fromSecret := map[string]string{}
	for _, variable := range server.Containers[0].Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil && variable.ValueFrom.SecretKeyRef.Name == "purser" && variable.Value == "" {
			fromSecret[variable.Name] = variable.ValueFrom.SecretKeyRef.Key
		}
	}
	for _, name := range []string{"DATABASE_URL", "PURSER_SECRET_KEY", "PURSER_SECRET_KEY_PREVIOUS", "PURSER_SMTP_URL", "OTEL_EXPORTER_OTLP_HEADERS"} {
		if fromSecret[name] != name {
			t.Errorf("%s is the value %q of the Secret", name, fromSecret[name])
		}
	}
	for name, pod := range map[string]core.PodSpec{"server": server, "migrate": migrate} {
		if len(pod.Volumes) != 1 || pod.Volumes[0].ConfigMap == nil || pod.Volumes[0].ConfigMap.Name != "private-ca" {
			t.Errorf("%s has the volumes %+v", name, pod.Volumes)
		}
		container := pod.Containers[0]
		if mounts := container.VolumeMounts; len(mounts) != 1 || mounts[0].Name != "ca" || mounts[0].MountPath != "/etc/purser/ca" {
			t.Errorf("%s mounts %+v", name, mounts)
		}
		if !slices.ContainsFunc(container.Env, func(v core.EnvVar) bool { return v.Name == "SSL_CERT_FILE" && v.Value == "/etc/purser/ca/ca.crt" }) {
			t.Errorf("%s has no SSL_CERT_FILE", name)
		}
	}
}
