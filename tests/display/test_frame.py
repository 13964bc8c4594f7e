"""The output of a 3D view in a cell of a real kernel. tests/browser tests the page's side."""

WIDGET = "application/vnd.jupyter.widget-view+json"


def test_a_notebook_gets_a_widget_with_the_port_and_a_program_gets_text(kernel, viewer):
    kernel.run(f"import rlnb\nscene = rlnb.view(rlnb.Task(id='<b>Demo</b>'), python={viewer!r})")
    kernel.run("scene")
    states = [m["content"]["data"]["state"] for m in kernel.messages if m["msg_type"] == "comm_open"]
    assert any(state.get("port") == 4711 and state["title"] == "<b>Demo</b> in 3D" for state in states)
    (shown,) = [m["content"]["data"] for m in kernel.messages if m["msg_type"] == "execute_result"]
    assert WIDGET in shown
    assert "<b>" not in shown["text/html"]
    kernel.run("scene", cell=None)
    last = [m["content"]["data"] for m in kernel.messages if m["msg_type"] == "execute_result"][-1]
    assert set(last) == {"text/plain", "text/html"}
    kernel.run("scene.close()")
