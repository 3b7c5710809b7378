// Command controlplane is a whole Kubernetes control plane in one binary, for joiner's tests and for people who want to try joiner
// without a cluster. Its first argument says which program it is (see the README beside this file); `up` runs them all.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	_ "time/tzdata" // CronJobs with a time zone, on machines without a zone database

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

const usage = `usage: controlplane PROGRAM [ARGUMENTS]

  up                        start a whole control plane (controlplane up --help)
  kubeconfig                write a kubeconfig for a ServiceAccount of a running control plane
  etcd | kube-apiserver | kube-controller-manager | kube-scheduler | kubectl | kwok
                            the upstream program, with its own arguments
`

// programs holds every upstream program; each takes os.Args with the program's name first and returns its exit code.
var programs = map[string]func() int{
	"etcd": func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver": func() int {
		return cli.Run(apiserver.NewAPIServerCommand())
	},
	"kube-controller-manager": func() int {
		return cli.Run(controllermanager.NewControllerManagerCommand())
	},
	"kube-scheduler": func() int {
		return cli.Run(scheduler.NewSchedulerCommand())
	},
	"kubectl": runKubectl,
	"kwok":    runKwok,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name := os.Args[1]
	switch name {
	case "up":
		os.Exit(report(up(os.Args[2:])))
	case "kubeconfig":
		os.Exit(report(serviceAccountKubeconfig(os.Args[2:])))
	case "help", "-h", "--help":
		fmt.Print(usage)
		return
	}
	program, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "controlplane: %q is not one of its programs\n\n%s", name, usage)
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	os.Exit(program())
}

// report prints an error, if there is one, and returns the exit code that goes with it.
func report(err error) int {
	if err == nil || err == pflag.ErrHelp {
		return 0
	}
	fmt.Fprintf(os.Stderr, "controlplane: %s\n", strings.TrimSpace(err.Error()))
	return 1
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints as kubectl does, and exits
	}
	return 0
}

// runKwok does what kwok's own main does: its configuration files and log flags are parsed before its command is built.
func runKwok() int {
	// The Kubernetes programs register flags for the whole process, a --version of another type than cobra's among them.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return report(err)
	}
	return report(execute(ctx, kwok.NewCommand(ctx), flags))
}

func execute(ctx context.Context, command *cobra.Command, flags *pflag.FlagSet) error {
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}
