package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const upUsage = `usage: controlplane up [flags]

Starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok on free ports of 127.0.0.1, prints

  export KUBECONFIG=DIR/admin.kubeconfig

on stdout once all of them are ready, and runs until Ctrl-C (or, with --commands, until stdin is closed). Nothing outlives it. Nodes
with the annotation kwok.x-k8s.io/node=fake are kept Ready, and the pods bound to them run.

`

const commandsUsage = `take commands from stdin, one a line, and stop when stdin is closed. Each is answered on stdout with
"ok" or "error: REASON":
  start COMPONENT    start it and wait until it is ready
  stop COMPONENT     end it in order (SIGTERM, and SIGKILL after 3 s)
  kill COMPONENT     end it as a crash would (SIGKILL)
  freeze COMPONENT   let it hang: it keeps its connections and answers nothing (SIGSTOP)
  thaw COMPONENT     let it go on`

var errStopped = errors.New("stopped")

// options of `up`.
type options struct {
	dir      string
	commands bool
	without  []string
	args     []string
	timeout  time.Duration
}

func parseUp(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("controlplane up", pflag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "", "folder for data, certificates and logs; it is kept, and a later `up` goes on from it "+
		"(default: a temporary one, removed at the end)")
	flags.BoolVar(&o.commands, "commands", false, commandsUsage)
	flags.StringSliceVar(&o.without, "without", nil, "components not to start, for instance kwok,kube-scheduler")
	flags.StringArrayVar(&o.args, "arg", nil, "COMPONENT=FLAG, one more flag for a component, for instance\n"+
		"kube-controller-manager=--node-monitor-grace-period=10s; may be repeated")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long each component may take until it is ready")
	flags.Usage = func() { fmt.Fprint(os.Stderr, upUsage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("up takes flags only, not %q", flags.Arg(0))
	}
	return o, nil
}

// up is the subcommand that runs a whole control plane.
func up(args []string) error {
	runtime.LockOSThread() // see supervisor
	o, err := parseUp(args)
	if err != nil {
		return err
	}
	dir, remove, err := openDir(o.dir)
	if err != nil {
		return err
	}
	defer remove()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE) // who reads stdout may be gone before stdin is seen to be closed
	go func() {
		<-signals
		cancel(errStopped)
	}()
	var lines chan string // stays nil, and silent, without --commands
	if o.commands {
		lines = make(chan string, 64) // the end of stdin is to be seen while we are busy
		go readLines(lines, cancel)
	}
	s, err := prepare(dir, o)
	if err != nil {
		return err
	}
	defer s.killAll()
	if err := s.run(ctx, o, lines); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// readLines passes stdin on, and ends everything when it is closed.
func readLines(lines chan<- string, cancel context.CancelCauseFunc) {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		lines <- input.Text()
	}
	cancel(errStopped)
}

// openDir makes the folder that was asked for, or a temporary one, and takes it for this process alone. What it returns gives it back.
func openDir(asked string) (string, func(), error) {
	remove := func(string) {}
	dir, err := filepath.Abs(asked)
	if asked == "" {
		dir, err = os.MkdirTemp("", "controlplane-")
		remove = func(dir string) { _ = os.RemoveAll(dir) } // nobody is left to tell
	}
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", nil, fmt.Errorf("another control plane runs in %s: stop it, or name another --dir", dir)
	}
	return dir, func() { remove(dir); lock.Close() }, nil
}

// prepare writes the files and takes the flags of the command line into account.
func prepare(dir string, o options) (*supervisor, error) {
	components, err := plan(dir)
	if err != nil {
		return nil, err
	}
	s, err := newSupervisor(dir, components, o.timeout)
	if err != nil {
		return nil, err
	}
	for _, arg := range o.args {
		name, flag, _ := strings.Cut(arg, "=")
		c, err := s.component(name)
		if err != nil {
			return nil, fmt.Errorf("--arg %s: %w", arg, err)
		}
		c.args = append(c.args, flag)
	}
	for _, name := range o.without {
		if _, err := s.component(name); err != nil {
			return nil, fmt.Errorf("--without %s: %w", name, err)
		}
	}
	return s, nil
}

// run brings everything up and then obeys until it is stopped or a component fails. Its error is never nil.
func (s *supervisor) run(ctx context.Context, o options, lines <-chan string) error {
	began := time.Now()
	if err := s.bringUp(ctx, o.without); err != nil {
		return stoppedOr(ctx, err)
	}
	fmt.Fprintf(os.Stderr, "controlplane: ready after %.1f s\n", time.Since(began).Seconds())
	fmt.Printf("export KUBECONFIG=%s\n", filepath.Join(s.dir, "admin.kubeconfig"))
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case name := <-s.exits:
			if err := s.ended(name); err != nil {
				return err
			}
		case line := <-lines:
			if err := s.obey(ctx, line); err != nil {
				fmt.Printf("error: %s\n", strings.ReplaceAll(err.Error(), "\n", " | "))
			} else {
				fmt.Println("ok")
			}
		}
	}
}

// stoppedOr prefers the news that we were told to stop to the errors which that has caused.
func stoppedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// bringUp starts etcd, then kube-apiserver, then all that only need these two.
func (s *supervisor) bringUp(ctx context.Context, without []string) error {
	var others []*component
	for _, c := range s.components {
		if slices.Contains(without, c.name) {
			continue
		}
		if err := s.start(c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if c.name != "etcd" && c.name != "kube-apiserver" {
			others = append(others, c)
			continue
		}
		if err := s.ready(ctx, c); err != nil {
			return err
		}
	}
	for _, c := range others {
		if err := s.ready(ctx, c); err != nil {
			return err
		}
	}
	if s.running["kube-apiserver"] == nil || s.running["kube-controller-manager"] == nil {
		return nil
	}
	return s.defaultServiceAccount(ctx)
}

// defaultServiceAccount waits for the ServiceAccount without which no pod can be created in namespace `default`. That it is there
// shows that the controllers work, which kube-controller-manager's own health does not.
func (s *supervisor) defaultServiceAccount(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "admin.kubeconfig"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errors.New("the controllers made no ServiceAccount default/default"))
	defer cancel()
	for {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		if err == nil || (ctx.Err() == nil && !apierrors.IsNotFound(err)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w\n%s", context.Cause(ctx), s.tail("kube-controller-manager"))
		case <-time.After(pollInterval):
		}
	}
}

// obey carries out one line of stdin.
func (s *supervisor) obey(ctx context.Context, line string) error {
	verb, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch verb {
	case "start":
		c, err := s.component(name)
		if err != nil {
			return err
		}
		if err := s.start(c); err != nil {
			return err
		}
		return s.ready(ctx, c)
	case "stop":
		return s.stop(name)
	case "kill":
		return s.kill(name)
	case "freeze":
		return s.signal(name, syscall.SIGSTOP)
	case "thaw":
		return s.signal(name, syscall.SIGCONT)
	}
	return fmt.Errorf("%q is no command; there are start, stop, kill, freeze and thaw, each with a component", line)
}
