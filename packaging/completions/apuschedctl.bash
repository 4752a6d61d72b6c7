# SPDX-License-Identifier: MIT
# bash completion for apuschedctl

_apuschedctl() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word command=''
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in status|list|register|unregister|run|explain|history|gpu|probe) command=$word; break ;; esac
  done
  local words=''
  case $previous in
    --bus) words='system session' ;;
    -p|--profile)
      words=$(busctl --auto-start=no --json=short get-property org.apusched1 /org/apusched1 \
        org.apusched1.Manager Profiles 2> /dev/null | tr -c 'A-Za-z0-9._-' ' ')
      words=${words##*data}
      ;;
    --watch) return ;;
    *)
      case $command in
        '') words='status list register unregister run explain history gpu probe --bus --json --help --version' ;;
        status|probe) words='--watch --bus --json --help' ;;
        run) words="--profile --no-agent --best-effort --now --help $(compgen -c -- "$current")" ;;
        history) words='--lines --bus --json --help' ;;
        explain) words="--bus --json --help $(_apuschedctl_pids)" ;;
        register) words="--profile --include-children --bus --json --help $(_apuschedctl_pids)" ;;
        unregister) words="--bus --json --help $(apuschedctl list 2> /dev/null | awk 'NR > 1 {print $1}')" ;;
        *) words='--bus --json --help' ;;
      esac
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

_apuschedctl_pids() {
  local entry
  for entry in /proc/[0-9]*; do echo "${entry#/proc/}"; done
}

complete -F _apuschedctl apuschedctl
