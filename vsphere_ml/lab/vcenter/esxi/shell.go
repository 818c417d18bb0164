package esxi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// searched is where the shell looks for programs. NVIDIA's tools are not there.
const searched = "/bin:/sbin"

// program is a command of the shell.
type program func(*process) error

// programs by their paths. BusyBox on ESXi has more applets than these.
var programs map[string]program

func init() { // by hand, since some of them look others up
	programs = map[string]program{
		"/bin/busybox": busybox, "/bin/cat": cat, "/bin/date": date, "/bin/egrep": grep, "/bin/false": fails, "/bin/grep": grep,
		"/bin/head": head, "/bin/hostname": hostname, "/bin/id": identity, "/bin/ls": list, "/bin/mktemp": mktemp, "/bin/rm": remove,
		"/bin/sh": sh, "/bin/sleep": pause, "/bin/tail": tail, "/bin/test": test, "/bin/timeout": timeout, "/bin/uname": uname, "/bin/wc": wc,
		"/bin/which": which, "/bin/esxcli": esxcli, "/bin/lspci": lspci, "/bin/vmware": vmware, "/bin/reboot": reboot,
		"/bin/nvidia-smi": nvidiaSMI, "/etc/init.d/xorg": xorg,
	}
}

// mellanox are NVIDIA's firmware tools.
const mellanox = "/opt/mellanox/bin"

var firmwareTools = map[string]program{
	"mst": mst, "mlxconfig": mlxconfig,
}

// process is a program that runs.
type process struct {
	ctx    context.Context
	host   Host
	args   []string
	dir    string
	files  *files
	env    expand.Environ
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

func (p *process) print(text string) { _, _ = io.WriteString(p.stdout, text) }

// printf writes a line to standard output.
func (p *process) printf(format string, values ...any) {
	p.print(fmt.Sprintf(format, values...) + "\n")
}

// fail writes a line to standard error and ends with the status.
func (p *process) fail(status uint8, format string, values ...any) error {
	fmt.Fprintf(p.stderr, format+"\n", values...)
	return interp.ExitStatus(status)
}

// standIn says on standard error, where no parser looks, that the answer is no hardware's.
func (p *process) standIn() {
	fmt.Fprintf(p.stderr, "%s: stand-in of the vsml lab; there is no such hardware\n", path.Base(p.args[0]))
}

// find is the program of that name or path, and its path.
func find(host Host, name string) (program, string) {
	if !strings.Contains(name, "/") {
		for _, folder := range strings.Split(searched, ":") {
			if found, ok := programs[folder+"/"+name]; ok && installed(host, name) {
				return found, folder + "/" + name
			}
		}
		return nil, ""
	}
	if tool, ok := firmwareTools[path.Base(name)]; ok && path.Dir(name) == mellanox && firmwareToolsVersion(host) != "" {
		return tool, name
	}
	return programs[name], name
}

// installed tells whether a program is there: nvidia-smi comes with the vGPU manager.
func installed(host Host, name string) bool {
	return name != "nvidia-smi" || host.View().Model.VGPUManager != ""
}

// firmwareToolsVersion is "" where the tools are not installed.
func firmwareToolsVersion(host Host) string {
	view := host.View()
	if view.Fails("no-mft") {
		return ""
	}
	return view.Model.MFT
}

// shell is one session's interpreter: a POSIX shell over files in memory and the programs above. Nothing of the
// machine that the lab runs on can be read, written or executed.
func shell(host Host, memory *files, environment expand.Environ, in io.Reader, out, errors io.Writer) (*interp.Runner, error) {
	return interp.New(
		interp.StdIO(in, out, errors), interp.Env(environment), interp.Dir("/"),
		interp.CallHandler(rename),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return execute(host, memory) }),
		interp.OpenHandler(func(ctx context.Context, name string, flag int, _ os.FileMode) (io.ReadWriteCloser, error) {
			return memory.open(absolute(interp.HandlerCtx(ctx).Dir, name), flag)
		}),
		interp.ReadDirHandler2(func(context.Context, string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist }),
		interp.StatHandler(func(_ context.Context, name string, _ bool) (fs.FileInfo, error) { return memory.stat(host, name) }),
	)
}

// rename takes from the interpreter the builtins by which it would ask the machine it runs on, or that it lacks.
func rename(_ context.Context, args []string) ([]string, error) {
	switch {
	case args[0] == "[" || args[0] == "test":
		return append([]string{"/bin/test", args[0]}, args[1:]...), nil
	case args[0] == "command" && len(args) > 2 && args[1] == "-v", args[0] == "type" && len(args) > 1:
		return []string{"/bin/which", args[len(args)-1]}, nil
	case args[0] == "ulimit", args[0] == "trap": // the interpreter's trap would run after every statement
		return []string{"true"}, nil
	case args[0] == "source" || args[0] == ".":
		return []string{"false"}, nil
	}
	return args, nil
}

func execute(host Host, memory *files) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		handler := interp.HandlerCtx(ctx)
		p := &process{ctx: ctx, host: host, args: args, dir: handler.Dir, files: memory, env: handler.Env,
			stdin: handler.Stdin, stdout: handler.Stdout, stderr: handler.Stderr}
		return p.run()
	}
}

func (p *process) run() error {
	run, _ := find(p.host, p.args[0])
	if run == nil {
		return p.fail(127, "sh: %s: not found", p.args[0])
	}
	return run(p)
}

// interpret runs a script in a shell of its own, line by line as it comes in, and returns its exit status.
func (p *process) interpret(script io.Reader, parameters ...string) error {
	runner, err := shell(p.host, p.files, p.env, p.stdin, p.stdout, p.stderr)
	if err != nil {
		return err
	}
	if err := interp.Params(append([]string{"--"}, parameters...)...)(runner); err != nil {
		return err
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangPOSIX))
	var last error
	badSyntax := parser.Interactive(io.MultiReader(script, strings.NewReader("\n")), func(line []*syntax.Stmt) bool {
		if parser.Incomplete() {
			return true
		}
		for _, statement := range line {
			last = runner.Run(p.ctx, statement)
			if runner.Exited() || p.ctx.Err() != nil {
				return false
			}
		}
		return true
	})
	if badSyntax != nil {
		return p.fail(2, "sh: %v", badSyntax)
	}
	return status(last)
}

// status keeps an exit status, and drops what the interpreter means for its own caller.
func status(err error) error {
	var code interp.ExitStatus
	if err == nil || errors.As(err, &code) {
		return err
	}
	return interp.ExitStatus(1)
}

func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}
