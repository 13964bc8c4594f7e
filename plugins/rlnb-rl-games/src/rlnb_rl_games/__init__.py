"""RL-Games (https://github.com/Denys88/rl_games) for rlnb."""
