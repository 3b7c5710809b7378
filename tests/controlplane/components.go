package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// component is one program of the control plane: how it is started, and where it says that it is well.
type component struct {
	name   string
	args   []string
	health string
}

// plan prepares dir (certificates, kubeconfigs, kwok's configuration) and says what is to be started, in this order.
func plan(dir string) ([]*component, error) {
	ports, err := freePorts(6)
	if err != nil {
		return nil, err
	}
	etcd, peer, apiserver, manager, scheduler, kwok := ports[0], ports[1], ports[2], ports[3], ports[4], ports[5]
	if err := writeFiles(dir, url("https", apiserver)); err != nil {
		return nil, err
	}
	return []*component{
		{"etcd", etcdArgs(dir, etcd, peer), url("https", etcd) + "/health"},
		{"kube-apiserver", apiserverArgs(dir, etcd, apiserver), url("https", apiserver) + "/readyz"},
		{"kube-controller-manager", managerArgs(dir, manager), url("https", manager) + "/healthz"},
		{"kube-scheduler", schedulerArgs(dir, scheduler), url("https", scheduler) + "/healthz"},
		{"kwok", kwokArgs(dir, kwok), url("http", kwok) + "/healthz"},
	}, nil
}

func url(scheme string, port int) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port) }

// marks hold the ports of this control plane while one of its programs is down, or has not begun to listen: the UDP ports of the same numbers, which
// nobody else uses. Several control planes start beside each other.
var marks []net.PacketConn

// freePorts looks below 32768, where Linux takes the source ports of outgoing connections from by default: a port found up there could
// be gone again when its program asks for it.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range 100 * count {
		port := 10_000 + rand.IntN(20_000)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		mark, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			mark.Close()
			continue
		}
		listener.Close()
		marks = append(marks, mark)
		if ports = append(ports, port); len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found no %d free ports of 127.0.0.1 between 10000 and 30000", count)
}

func writeFiles(dir, server string) error {
	pki := filepath.Join(dir, "pki")
	if err := os.MkdirAll(pki, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority(pki)
	if err != nil {
		return err
	}
	users := []struct {
		name, user string
		groups     []string
		kubeconfig bool
	}{
		{"etcd", "etcd", nil, false},
		{"kube-apiserver", "kube-apiserver", nil, false},
		{"admin", "admin", []string{"system:masters"}, true},
		{"kube-controller-manager", "system:kube-controller-manager", nil, true},
		{"kube-scheduler", "system:kube-scheduler", nil, true},
		{"kwok", "kwok", []string{"system:masters"}, true},
	}
	for _, u := range users {
		if err := ca.issue(u.name, u.user, u.groups...); err != nil {
			return err
		}
		if !u.kubeconfig {
			continue
		}
		if err := writeCertificateKubeconfig(dir, u.name, server); err != nil {
			return err
		}
	}
	if err := writeServiceAccountKey(pki); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "kwok.yaml"), []byte(kwokConfiguration()), 0o600)
}

// certificate is the flags by which every Kubernetes program is told its own.
func certificate(dir, name string) []string {
	return []string{
		"--tls-cert-file=" + filepath.Join(dir, "pki", name+".crt"),
		"--tls-private-key-file=" + filepath.Join(dir, "pki", name+".key"),
	}
}

func etcdArgs(dir string, client, peer int) []string {
	cert, key, ca := filepath.Join(dir, "pki", "etcd.crt"), filepath.Join(dir, "pki", "etcd.key"), filepath.Join(dir, "pki", "ca.crt")
	return []string{
		"--name=default", "--data-dir=" + filepath.Join(dir, "etcd"),
		"--listen-client-urls=" + url("https", client), "--advertise-client-urls=" + url("https", client),
		"--listen-peer-urls=" + url("https", peer), "--initial-advertise-peer-urls=" + url("https", peer),
		"--initial-cluster=default=" + url("https", peer),
		"--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca, "--client-cert-auth",
		"--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth",
		"--unsafe-no-fsync", // safe against the death of any process, not against that of the machine
		"--log-level=warn",
	}
}

func apiserverArgs(dir string, etcd, port int) []string {
	pki := filepath.Join(dir, "pki")
	return append(certificate(dir, "kube-apiserver"),
		fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // Endpoints must not hold loopback addresses
		"--etcd-servers="+url("https", etcd), "--etcd-cafile="+filepath.Join(pki, "ca.crt"),
		"--etcd-certfile="+filepath.Join(pki, "kube-apiserver.crt"), "--etcd-keyfile="+filepath.Join(pki, "kube-apiserver.key"),
		"--cert-dir="+pki,
		"--client-ca-file="+filepath.Join(pki, "ca.crt"),
		// Nobody holds such a certificate, yet the other programs ask for these settings again and again.
		"--requestheader-client-ca-file="+filepath.Join(pki, "ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+filepath.Join(pki, "service-account.pub"),
		"--service-account-signing-key-file="+filepath.Join(pki, "service-account.key"),
		"--service-cluster-ip-range="+serviceRange,
		"--allow-privileged=true",
	)
}

func managerArgs(dir string, port int) []string {
	pki := filepath.Join(dir, "pki")
	return append(serverArgs(dir, "kube-controller-manager", port),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+filepath.Join(pki, "service-account.key"),
		"--root-ca-file="+filepath.Join(pki, "ca.crt"),
		"--cluster-signing-cert-file="+filepath.Join(pki, "ca.crt"), "--cluster-signing-key-file="+filepath.Join(pki, "ca.key"),
		"--service-cluster-ip-range="+serviceRange,
	)
}

func schedulerArgs(dir string, port int) []string { return serverArgs(dir, "kube-scheduler", port) }

// serverArgs is what kube-controller-manager and kube-scheduler have in common. Their request rates are raised so that a test with a
// thousand pods waits for what it tests and not for the throttle of a client.
func serverArgs(dir, name string, port int) []string {
	kubeconfig := filepath.Join(dir, name+".kubeconfig")
	return append(certificate(dir, name),
		fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1",
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
}

func kwokArgs(dir string, port int) []string {
	return []string{
		"--kubeconfig=" + filepath.Join(dir, "kwok.kubeconfig"),
		"--config=" + filepath.Join(dir, "kwok.yaml"),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--node-lease-duration-seconds=40", // the kubelet's default
		"--cidr=10.128.0.0/9",              // room for eight million pods
		"--node-ip=127.0.0.1",
		fmt.Sprintf("--server-address=127.0.0.1:%d", port),
	}
}

// kwokConfiguration is kwok's own `fast` stages: nodes are Ready and stay so, pods run, finish (Jobs) and go, all at once.
func kwokConfiguration() string {
	return strings.Join([]string{
		"apiVersion: config.kwok.x-k8s.io/v1alpha1\nkind: KwokConfiguration\noptions:\n" +
			"  podPlayStageParallelism: 16\n  nodePlayStageParallelism: 16\n  nodeLeaseParallelism: 16\n",
		nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	}, "\n---\n")
}
