"""What people look at. plotly, ipywidgets and IPython are imported inside functions."""
