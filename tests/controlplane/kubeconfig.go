package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig that holds everything it needs, so that it can be copied elsewhere.
func writeKubeconfig(path, server string, ca []byte, namespace string, user clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["controlplane"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["user"] = &user
	config.Contexts["controlplane"] = &clientcmdapi.Context{Cluster: "controlplane", AuthInfo: "user", Namespace: namespace}
	config.CurrentContext = "controlplane"
	return clientcmd.WriteToFile(*config, path)
}

// writeCertificateKubeconfig writes DIR/NAME.kubeconfig for the certificate DIR/pki/NAME.crt.
func writeCertificateKubeconfig(dir, name, server string) error {
	ca, err := os.ReadFile(filepath.Join(dir, "pki", "ca.crt"))
	if err != nil {
		return err
	}
	certificate, err := os.ReadFile(filepath.Join(dir, "pki", name+".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(dir, "pki", name+".key"))
	if err != nil {
		return err
	}
	user := clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	return writeKubeconfig(filepath.Join(dir, name+".kubeconfig"), server, ca, "default", user)
}

// serviceAccountKubeconfig is the subcommand `kubeconfig`: it asks for a token of a ServiceAccount and writes a kubeconfig around it.
func serviceAccountKubeconfig(args []string) error {
	flags := pflag.NewFlagSet("controlplane kubeconfig", pflag.ContinueOnError)
	dir := flags.String("dir", "", "folder of the running control plane (as given to, or printed by, `up`)")
	expiration := flags.Duration("expiration", 24*time.Hour, "how long the token is good for")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: controlplane kubeconfig --dir DIR NAMESPACE/NAME\n\n"+
			"Writes DIR/NAMESPACE-NAME.kubeconfig for that ServiceAccount and prints its path.\n\n%s", flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	namespace, name, ok := strings.Cut(flags.Arg(0), "/")
	if *dir == "" || !ok || flags.NArg() != 1 {
		flags.Usage()
		return errors.New("kubeconfig wants --dir and one NAMESPACE/NAME")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(*dir, "admin.kubeconfig"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	seconds := int64(expiration.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	request, err = client.CoreV1().ServiceAccounts(namespace).CreateToken(context.Background(), name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("no token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	path := filepath.Join(*dir, namespace+"-"+name+".kubeconfig")
	user := clientcmdapi.AuthInfo{Token: request.Status.Token}
	if err := writeKubeconfig(path, config.Host, config.CAData, namespace, user); err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
