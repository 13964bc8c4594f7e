"""The arguments of RSL-RL, in a module beside the script."""


def add_rsl_rl_args(parser):
    parser.add_argument("--experiment_name", type=str, default=None)
    parser.add_argument("--run_name", type=str, default=None)
