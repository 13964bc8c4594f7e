"""Trackio (https://github.com/gradio-app/trackio) for rlnb."""
